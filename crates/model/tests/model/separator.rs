//! Separators in the file: the shapes that other tools read, nothing lost there and back, nothing half
//! understood.

use crate::generate::separator;
use proptest::prelude::*;
use punctual_model::{Call, FileClass, Object, ObjectName, Separator};
use serde_json::json;

#[test]
fn separators_are_written_as_documented() {
    let shape = |call, object| serde_json::to_value(Separator { call, object }).expect("serializes");
    let file = |class, fd, identity| Object::File { class, fd, identity };
    assert_eq!(
        shape(Call::ClockNanosleep, Object::Clock { id: 1, absolute: true }),
        json!({"call": "clock_nanosleep", "clock": "CLOCK_MONOTONIC", "absolute": true})
    );
    assert_eq!(
        shape(Call::ClockNanosleep, Object::Clock { id: -6, absolute: false }),
        json!({"call": "clock_nanosleep", "clock": "CLOCK_OTHER", "clock_id": -6, "absolute": false})
    );
    assert_eq!(
        shape(Call::Read, file(FileClass::Pipe, 5, 1234)),
        json!({"call": "read", "object": "pipe:[1234]", "fd": 5})
    );
    assert_eq!(
        shape(Call::Read, file(FileClass::CharacterDevice, 3, 10 << 20 | 200)),
        json!({"call": "read", "object": "char 10:200", "fd": 3})
    );
    assert_eq!(
        shape(Call::Read, file(FileClass::Timerfd, 4, 0)),
        json!({"call": "read", "object": "timerfd", "fd": 4})
    );
    assert_eq!(
        shape(Call::FutexWaitBitset, Object::address(0x7f00_1234_5678)),
        json!({"call": "futex_wait_bitset", "address": "0x7f0012345678"})
    );
    assert_eq!(
        shape(
            Call::FutexWait,
            Object::Address { address: 0x5500_0000_4040, name: ObjectName::new("a:lock") }
        ),
        json!({"call": "futex_wait", "address": "0x550000004040", "name": "a:lock"})
    );
    assert_eq!(shape(Call::Semop, Object::Id(3)), json!({"call": "semop", "id": 3}));
    assert_eq!(shape(Call::Read, Object::Others), json!({"call": "read", "object": "others"}));
    assert_eq!(shape(Call::Suspension, Object::None), json!({"call": "suspension"}));
}

#[test]
fn invalid_separators_are_refused() {
    for (text, named) in [
        (json!({"call": "getpid"}), "\"getpid\""),
        (json!({"call": "read", "object": "pipe:[12", "fd": 5}), "\"pipe:[12\""),
        (json!({"call": "read", "object": "timerfd:[12]", "fd": 5}), "\"timerfd:[12]\""),
        (json!({"call": "read", "object": "char 10:1048576", "fd": 5}), "\"char 10:1048576\""),
        (json!({"call": "read", "object": "tape", "fd": 5}), "\"tape\""),
        (json!({"call": "read", "object": "pipe:[1234]"}), "`fd`"),
        (json!({"call": "read", "object": "others", "id": 3}), "several"),
        (json!({"call": "clock_nanosleep", "clock": "CLOCK_MONOTONIC"}), "`absolute`"),
        (json!({"call": "clock_nanosleep", "clock": "CLOCK_OTHER", "absolute": true}), "`clock_id`"),
        (json!({"call": "clock_nanosleep", "clock": "CLOCK_WALL", "absolute": true}), "\"CLOCK_WALL\""),
        (json!({"call": "futex_wait", "address": "0x+1"}), "\"0x+1\""),
        (json!({"call": "futex_wait", "address": "1234"}), "\"1234\""),
        (json!({"call": "futex_wait", "address": "0x8", "name": ""}), "`name`"),
        (json!({"call": "futex_wait", "address": "0x8", "name": "a\nb"}), "`name`"),
        (json!({"call": "futex_wait", "address": "0x8", "name": "a".repeat(321)}), "`name`"),
    ] {
        let error =
            serde_json::from_value::<Separator>(text.clone()).expect_err(&text.to_string()).to_string();
        assert!(error.contains(named), "{text}: {error}");
    }
}

fn of_i386(call: Call) -> Vec<u16> {
    call.numbers_on_i386().collect()
}

fn of_arm(call: Call) -> Vec<u16> {
    call.numbers_on_arm().collect()
}

#[test]
fn calls_and_classes_have_unique_names_and_numbers() {
    for call in Call::ALL {
        assert_eq!(Call::from_name(call.name()), Some(*call));
        for number in [Call::number_on_x86_64, Call::number_on_aarch64] {
            let same = |other: &&Call| number(**other).is_some() && number(**other) == number(*call);
            assert!(Call::ALL.iter().filter(same).count() <= 1, "two calls have the number of {call}");
        }
        for numbers in [of_i386, of_arm] {
            let same = |other: &&Call| numbers(**other).iter().any(|number| numbers(*call).contains(number));
            assert!(
                Call::ALL.iter().filter(same).count() <= 1,
                "two calls of 32 bits have a number of {call}"
            );
        }
        assert_eq!(Call::from_number(*call as u8), Some(*call));
    }
    for class in FileClass::ALL {
        assert_eq!(FileClass::from_number(*class as u8), Some(*class));
    }
}

#[test]
fn separators_are_printed_readably() {
    let print = |call, object| Separator { call, object }.to_string();
    assert_eq!(print(Call::Suspension, Object::None), "suspension");
    assert_eq!(print(Call::Semop, Object::Id(3)), "semop id 3");
    assert_eq!(
        print(Call::ClockNanosleep, Object::Clock { id: 1, absolute: true }),
        "clock_nanosleep CLOCK_MONOTONIC absolute"
    );
    let pipe = Object::File { class: FileClass::Pipe, fd: 5, identity: 1234 };
    assert_eq!(print(Call::Read, pipe), "read pipe:[1234] fd 5");
    assert_eq!(print(Call::FutexWait, Object::address(0x40)), "futex_wait 0x40");
    let lock = Object::Address { address: 0x40, name: ObjectName::new("robot:lock") };
    assert_eq!(print(Call::FutexWait, lock), "futex_wait robot:lock");
}

/// Within a run, the address counts; in another one, the name.
#[test]
fn names_are_no_part_of_keys_but_last() {
    let lock = |address, name| Object::Address { address, name: ObjectName::new(name) };
    let (one, other) = (lock(8, "robot:lock"), lock(16, "robot:lock"));
    assert_eq!((one.key(), one.lasting()), (Object::address(8), one));
    assert_ne!(one.key(), other.key());
    assert_eq!(one.name(), other.name());
    assert!(
        ObjectName::new("b:a") < ObjectName::new("b:b") && ObjectName::new("b:a") > ObjectName::new("a:z")
    );
    let file = Object::File { class: FileClass::Pipe, fd: 3, identity: 7 };
    assert_eq!(file.lasting(), file.key());
}

proptest! {
    #[test]
    fn separators_are_read_back_unchanged(separator in separator()) {
        let text = serde_json::to_string(&separator).expect("serializes");
        prop_assert_eq!(serde_json::from_str::<Separator>(&text).expect(&text), separator);
    }

    /// A person and a program see the same name.
    #[test]
    fn the_object_in_the_file_equals_the_printed_one(separator in separator()) {
        if let Object::File { fd, .. } = separator.object {
            let shape = serde_json::to_value(separator).expect("serializes");
            let printed = format!("{} fd {fd}", shape["object"].as_str().expect("a string"));
            prop_assert_eq!(separator.object.to_string(), printed);
        }
    }
}
