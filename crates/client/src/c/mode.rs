//! `punctual_replace_specs`: a change of mode.

use super::connection::{Shared, shared};
use super::failure::{Failure, guarded};
use super::parameters::name;
use super::spec::{Spec, declared, punctual_spec_free};
use punctual_protocol::{ChangeSpec, CreateSpec, LONGEST_SPEC_NAME, Parameters, ReplaceSpecs, SpecId};
use std::ffi::{c_char, c_int};
use std::ptr;

/// `struct punctual_replacement`: what becomes of one spec.
#[repr(C)]
struct Replacement {
    spec: *mut Spec,
    params: *const Parameters,
    name: *const c_char,
}

/// What a replacement asks for.
enum Step<'a> {
    Release,
    Change(&'a Spec, &'a Parameters),
    Create(&'a Parameters),
}

/// Adds a replacement to the request.
///
/// # Safety
/// Its pointers are NULL or what C may use.
unsafe fn step<'a>(wanted: &Replacement, request: &mut ReplaceSpecs) -> Result<Step<'a>, Failure> {
    // SAFETY: by this function's contract.
    let (spec, called) =
        unsafe { (wanted.spec.as_ref(), name("the name of the spec", wanted.name, LONGEST_SPEC_NAME)?) };
    match spec {
        Some(spec) if wanted.params.is_null() => {
            request.release.push(spec.id());
            Ok(Step::Release)
        }
        Some(spec) => {
            // SAFETY: by this function's contract.
            let params = unsafe { declared(wanted.params)? };
            request.change.push(ChangeSpec {
                spec: spec.id(),
                parameters: params.clone(),
                interactive: false,
            });
            Ok(Step::Change(spec, params))
        }
        None => {
            // SAFETY: by this function's contract.
            let params = unsafe { declared(wanted.params)? };
            request.create.push(CreateSpec {
                parameters: params.clone(),
                name: called,
                process: None,
                interactive: false,
            });
            Ok(Step::Create(params))
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn punctual_replace_specs(
    connection: *const Shared,
    replacements: *mut Replacement,
    count: usize,
) -> c_int {
    guarded(|| {
        if replacements.is_null() {
            return Err(Failure::invalid("the replacements are NULL"));
        }
        // SAFETY: the header demands a live connection and so many replacements.
        let (client, replacements) =
            unsafe { (shared(connection)?, std::slice::from_raw_parts_mut(replacements, count)) };
        let mut request = ReplaceSpecs::default();
        // SAFETY: the header demands live specs, valid parameters, and strings or NULL.
        let steps = replacements.iter().map(|wanted| unsafe { step(wanted, &mut request) });
        let steps = steps.collect::<Result<Vec<_>, _>>()?;
        let mut specs: Vec<SpecId> = request.release.clone();
        specs.extend(request.change.iter().map(|change| change.spec));
        specs.sort_unstable();
        if let Some(pair) = specs.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::invalid(format!("spec {} stands there twice", pair[0])));
        }
        let changed = request.change.len();
        let admissions = client.with(|client| client.replace_specs(request))?;
        // Of the changed specs, and then of the new ones.
        let (mut changes, mut creations) = (admissions.iter().take(changed), admissions.iter().skip(changed));
        for (step, wanted) in steps.into_iter().zip(replacements) {
            match step {
                Step::Release => {
                    // SAFETY: it is live, stands there once, and by the header is not used again.
                    unsafe { punctual_spec_free(wanted.spec) };
                    wanted.spec = ptr::null_mut();
                }
                Step::Change(spec, params) => {
                    if let Some(admission) = changes.next() {
                        spec.changed(params, admission.clone());
                    }
                }
                Step::Create(params) => {
                    if let Some(admission) = creations.next() {
                        let created = Spec::new(client.clone(), params, admission.clone());
                        wanted.spec = Box::into_raw(Box::new(created));
                    }
                }
            }
        }
        Ok(0)
    })
}
