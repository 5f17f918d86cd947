//! What a system of ROS 2 and its machine are called, the same in every run: runs with the same names are
//! compared as runs of one configuration.

use crate::ctf18::Reader;
use std::collections::BTreeSet;

/// Longest list of nodes that is written out.
const MOST: usize = 60;

/// Called after its nodes, whatever of them happened to run. A long list ends with its number and a digest.
pub fn name(nodes: &[String]) -> String {
    let names: BTreeSet<String> = nodes.iter().filter_map(|node| lasting(node)).collect();
    let all = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    if all.len() <= MOST {
        return format!("ROS 2: {all}");
    }
    let ends = || all.match_indices(", ").map(|(at, _)| at);
    let end = ends().take_while(|at| *at <= MOST).last().or(ends().next()).unwrap_or(all.len());
    // FNV-1a: the same with every version of Punctual.
    let digest =
        all.bytes().fold(0x811c_9dc5_u32, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("ROS 2: {}, … ({} nodes, {digest:08x})", &all[..end], names.len())
}

/// A node's name without what is another in every run: numbers of processes, addresses. `None` for hidden
/// nodes, such as those of tools.
fn lasting(node: &str) -> Option<String> {
    let last = node.rsplit('/').next().unwrap_or(node);
    if last.starts_with('_') {
        return None;
    }
    let is_of_run = |part: &str| {
        let is_number = part.len() >= 4 && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number || part.len() >= 8 && part.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    Some(match node.rsplit_once('_') {
        Some((name, part)) if is_of_run(part) => format!("{name}_*"),
        _ => node.to_owned(),
    })
}

/// The kernel, if it is in the trace. The host's name is not the platform: a container has another each time.
pub fn platform(reader: &Reader) -> Option<String> {
    let release = (0..reader.traces()).find_map(|trace| reader.env(trace, "kernel_release"))?;
    Some(format!("Linux {release}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: &[&str]) -> String {
        name(&nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_same_nodes_are_the_same_program() {
        assert_eq!(of(&["/planner", "/camera_2", "/planner"]), "ROS 2: /camera_2, /planner");
        let run = ["/a", "/_ros2cli_4711", "/launch_ros_80124", "/ns/transform_listener_impl_55ab12cd90e0"];
        assert_eq!(of(&run), "ROS 2: /a, /launch_ros_*, /ns/transform_listener_impl_*");
    }

    #[test]
    fn long_lists_end_with_a_digest() {
        let nodes: Vec<String> = (100..300).map(|number| format!("/node{number}")).collect();
        let (all, fewer) = (name(&nodes), name(&nodes[..199]));
        assert!(all.starts_with("ROS 2: /node100, /node101, ") && all.contains("(200 nodes, "), "{all}");
        assert!(all.len() < 110 && all != fewer, "{all}");
        assert!(fewer.contains("(199 nodes, "), "{fewer}");
    }
}
