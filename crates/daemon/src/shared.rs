//! Plugins from shared objects, behind the same trait as the built-in ones. `include/punctual-plugin.h` is
//! the contract.
//!
//! The object is trusted not to crash, and with nothing more: what it offers and assigns is looked at before
//! anybody relies on it.

mod abi;
mod object;

use abi::{CAssignment, CConfiguration, CLoad, COffer, CParameters};
use object::Object;
use punctual_model::Duration;
use punctual_schedule::{
    Answer, AssignedPolicy, Assignment, Load, Offer, Parameters, Plugin, Refusal, Settings, SpecId, Test,
};
use std::ffi::{CString, c_char, c_int, c_void};
use std::path::Path;

/// Room for a sentence.
const REASON: usize = 512;

/// One instance of a shared object's plugin.
pub struct Shared {
    settings: Settings,
    instance: *mut c_void,
    object: Object,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Shared {
    /// Loads an object and makes an instance of its plugin. An error is a sentence that names the object.
    pub fn load(path: &Path, settings: Settings) -> Result<Shared, String> {
        let object = Object::open(path)?;
        let name = CString::new(settings.name.clone())
            .map_err(|_| "a plugin's name has no zero in it".to_owned())?;
        let configuration = CConfiguration {
            size: size::<CConfiguration>(),
            priority_min: settings.priorities.0,
            priority_max: settings.priorities.1,
            processor_count: u32::try_from(settings.processors.len())
                .map_err(|_| "too many processors".to_owned())?,
            processors: settings.processors.as_ptr(),
            name: name.as_ptr(),
            threshold: settings.threshold,
            exact: u32::from(settings.test == Test::Exact),
            reserved: 0,
            least_runtime_ns: settings.limits.least_runtime.ns(),
            least_period_ns: settings.limits.least_period.ns(),
            greatest_period_ns: settings.limits.greatest_period.ns(),
        };
        let mut error = [0; REASON];
        // SAFETY: all that is pointed to lives until the call is over, and `error` has as much room as is
        // said.
        let instance = unsafe { (object.functions.init)(&configuration, error.as_mut_ptr(), error.len()) };
        match instance.is_null() {
            true => Err(format!(
                "{}: {}",
                path.display(),
                sentence(&error, "its init() failed and does not say why")
            )),
            false => Ok(Shared { settings, instance, object }),
        }
    }

    /// A refusal where the plugin broke its own contract; the client cannot help it, the administrator can.
    fn broken(&self, what: &str) -> Refusal {
        Refusal::Unschedulable(format!(
            "the shared object of '{}' gave a wrong answer: {what}",
            self.settings.name
        ))
    }

    fn offer(&self, parameters: &Parameters, offer: &COffer) -> Result<Offer, Refusal> {
        if !self.settings.processors.contains(&offer.processor) {
            return Err(self.broken(&format!("processor {}, which is not one of its own", offer.processor)));
        }
        let accepted = Duration::from_ns(offer.accepted_runtime_ns);
        let accepted_runtime = match parameters.runtime {
            None => None,
            Some(least)
                if least <= accepted
                    && accepted <= parameters.desired_runtime.unwrap_or(least).max(least) =>
            {
                Some(accepted)
            }
            Some(least) => {
                return Err(self.broken(&format!(
                    "an accepted runtime of {} ns, where {} ns were declared",
                    accepted.ns(),
                    least.ns()
                )));
            }
        };
        let ignored = offer.ignored != 0;
        if ignored && !parameters.ignore_admission {
            return Err(self.broken("it ignored its admission test, which nobody asked for"));
        }
        Ok(Offer { processor: offer.processor, accepted_runtime, ignored })
    }

    fn policy(&self, assignment: &CAssignment) -> Option<AssignedPolicy> {
        let (least, greatest) = self.settings.priorities;
        let limits = &self.settings.limits;
        match assignment.policy {
            abi::POLICY_FIFO if (least..=greatest).contains(&assignment.priority) => {
                Some(AssignedPolicy::Fifo(assignment.priority))
            }
            abi::POLICY_RR if (least..=greatest).contains(&assignment.priority) => {
                Some(AssignedPolicy::RoundRobin(assignment.priority))
            }
            abi::POLICY_DEADLINE => {
                let [runtime, deadline, period] =
                    [assignment.runtime_ns, assignment.deadline_ns, assignment.period_ns]
                        .map(Duration::from_ns);
                let fits = limits.least_runtime <= runtime && runtime <= deadline && deadline <= period;
                let kernels = limits.least_period <= period && period <= limits.greatest_period;
                (fits && kernels).then_some(AssignedPolicy::Deadline { runtime, deadline, period })
            }
            _ => None,
        }
    }
}

impl Plugin for Shared {
    fn name(&self) -> &str {
        &self.settings.name
    }

    fn consider(&self, parameters: &Parameters, replacing: Option<SpecId>) -> Answer {
        let given = declared(parameters);
        let mut offer = COffer { size: size::<COffer>(), ..COffer::default() };
        let mut reason = [0; REASON];
        let functions = &self.object.functions;
        // SAFETY: the instance is init()'s and not yet destroyed; all that is pointed to lives until the call
        // is over, with the room that is said.
        let answer: c_int = unsafe {
            match replacing {
                None => {
                    (functions.accept)(self.instance, &given, &mut offer, reason.as_mut_ptr(), reason.len())
                }
                Some(spec) => (functions.change)(
                    self.instance,
                    spec.0,
                    &given,
                    &mut offer,
                    reason.as_mut_ptr(),
                    reason.len(),
                ),
            }
        };
        let as_offered =
            |answer: fn(Offer) -> Answer| self.offer(parameters, &offer).map_or_else(Answer::No, answer);
        match answer {
            abi::OK => as_offered(Answer::Ok),
            abi::PARTIAL => as_offered(Answer::Partial),
            abi::NO => Answer::No(Refusal::Unschedulable(sentence(&reason, "it does not say why"))),
            other => Answer::No(self.broken(&format!("{other} is neither OK, PARTIAL nor NO"))),
        }
    }

    fn admit(&mut self, spec: SpecId, parameters: &Parameters, offer: Offer) {
        // By the contract of `admit`; so a plugin need not look itself.
        if !self.settings.processors.contains(&offer.processor) {
            return;
        }
        let given = declared(parameters);
        let offer = COffer {
            size: size::<COffer>(),
            processor: offer.processor,
            accepted_runtime_ns: offer.accepted_runtime.map_or(0, Duration::ns),
            ignored: u32::from(offer.ignored),
            reserved: 0,
        };
        // SAFETY: as in `consider`.
        unsafe { (self.object.functions.schedule)(self.instance, spec.0, &given, &offer) }
    }

    fn release(&mut self, spec: SpecId) {
        // SAFETY: as in `consider`.
        unsafe { (self.object.functions.release)(self.instance, spec.0) }
    }

    fn assignment(&self, spec: SpecId) -> Option<Assignment> {
        let mut assignment = CAssignment { size: size::<CAssignment>(), ..CAssignment::default() };
        // SAFETY: as in `consider`.
        let found = unsafe { (self.object.functions.assignment)(self.instance, spec.0, &mut assignment) };
        if found != 0 || !self.settings.processors.contains(&assignment.processor) {
            return None;
        }
        self.policy(&assignment).map(|policy| Assignment { processor: assignment.processor, policy })
    }

    fn shifted(&mut self) -> bool {
        // SAFETY: as in `consider`.
        unsafe { (self.object.functions.shifted)(self.instance) != 0 }
    }

    fn attached(&mut self, spec: SpecId, thread: u32) -> Result<(), String> {
        if let Some(attach) = self.object.functions.attach {
            // SAFETY: as in `consider`.
            unsafe { attach(self.instance, spec.0, thread) }
        }
        Ok(())
    }

    fn detached(&mut self, spec: SpecId) {
        if let Some(detach) = self.object.functions.detach {
            // SAFETY: as in `consider`.
            unsafe { detach(self.instance, spec.0) }
        }
    }

    fn loads(&self) -> Vec<Load> {
        let mut loads = vec![CLoad::default(); self.settings.processors.len()];
        // SAFETY: as in `consider`.
        let count = unsafe { (self.object.functions.loads)(self.instance, loads.as_mut_ptr(), loads.len()) };
        loads.truncate(count);
        loads.retain(|load| {
            self.settings.processors.contains(&load.processor) && load.utilization.is_finite()
        });
        let load = |load: CLoad| Load {
            processor: load.processor,
            utilization: load.utilization,
            specs: load.specs as usize,
        };
        loads.into_iter().map(load).collect()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the instance is init()'s, and nobody has it any more. The object is closed after this,
        // since it is a field.
        unsafe { (self.object.functions.destroy)(self.instance) }
    }
}

/// Parameters as C has them.
fn declared(parameters: &Parameters) -> CParameters {
    let times = [
        (abi::RUNTIME, parameters.runtime),
        (abi::DESIRED_RUNTIME, parameters.desired_runtime),
        (abi::PERIOD, parameters.period),
        (abi::DEADLINE, parameters.deadline),
    ];
    let bits = times.iter().filter(|(_, time)| time.is_some()).fold(0, |bits, (bit, _)| bits | bit);
    let [runtime_ns, desired_runtime_ns, period_ns, deadline_ns] =
        times.map(|(_, time)| time.map_or(0, Duration::ns));
    CParameters {
        size: size::<CParameters>(),
        declared: bits | parameters.priority.map_or(0, |_| abi::PRIORITY),
        runtime_ns,
        desired_runtime_ns,
        period_ns,
        deadline_ns,
        priority: parameters.priority.unwrap_or(0),
        ignore_admission: u32::from(parameters.ignore_admission),
    }
}

fn size<T>() -> u32 {
    // Some dozen bytes.
    size_of::<T>() as u32
}

/// What a plugin wrote, up to its zero, in one line.
fn sentence(written: &[c_char], otherwise: &str) -> String {
    let bytes: Vec<u8> = written.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    let text = String::from_utf8_lossy(&bytes).replace(char::is_control, " ");
    if text.trim().is_empty() { otherwise.to_owned() } else { text.trim().to_owned() }
}
