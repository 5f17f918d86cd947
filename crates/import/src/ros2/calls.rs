//! The events of ros2_tracing and of CARET, by what they mean. Fields are found once per kind of event.

use crate::ctf18::{Class, Event, Field, Reader};
use punctual_trace::account::Use;

/// An object of a process: its address there.
pub type Handle = u64;

/// What happened in a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    Node {
        node: Handle,
        name: String,
        namespace: String,
    },
    Publisher {
        publisher: Handle,
        rmw: Handle,
        topic: String,
    },
    Subscription {
        subscription: Handle,
        node: Handle,
        rmw: Handle,
        topic: String,
    },
    /// The middleware made a subscription; without [`Call::Subscription`] it is its own.
    RmwSubscription {
        rmw: Handle,
    },
    /// `object` is the C++ side of a subscription.
    SubscriptionObject {
        subscription: Handle,
        object: Handle,
    },
    Service {
        service: Handle,
        node: Handle,
        rmw: Handle,
        name: String,
    },
    Client {
        node: Handle,
        rmw: Handle,
        name: String,
    },
    ClientId {
        rmw: Handle,
        id: [u8; 16],
    },
    Timer {
        timer: Handle,
        period: i64,
    },
    TimerNode {
        timer: Handle,
        node: Handle,
    },
    /// A subscription's object, a service or a timer has this callback.
    Callback {
        of: Owner,
        handle: Handle,
        callback: Handle,
    },
    /// A ring buffer belongs to a buffer within the process, and that to a subscription's object.
    RingBuffer {
        ring: Handle,
        buffer: Handle,
    },
    Buffer {
        buffer: Handle,
        object: Handle,
    },
    IntraPublish {
        publisher: Handle,
        message: Handle,
    },
    Publish {
        publisher: Handle,
        message: Handle,
    },
    /// Before Jazzy it names no publisher, and the time stamp follows from the middleware.
    RmwPublish {
        rmw: Option<Handle>,
        stamp: Option<u64>,
    },
    /// A writer of the middleware (Cyclone DDS, Fast DDS) serves this topic.
    Writer {
        writer: Handle,
        topic: String,
    },
    Written {
        writer: Handle,
        stamp: u64,
    },
    /// The message being published has this time stamp.
    Stamp {
        message: Handle,
        stamp: u64,
    },
    /// Another object holds the same message.
    Copy {
        from: Handle,
        to: Handle,
    },
    Enqueue {
        ring: Handle,
        index: u64,
    },
    Dequeue {
        ring: Handle,
        index: u64,
    },
    Take {
        rmw: Handle,
        stamp: u64,
    },
    /// A callback is about to be called with this message.
    Dispatch {
        callback: Handle,
        stamp: u64,
    },
    DispatchIntra {
        callback: Handle,
        message: Handle,
    },
    Request {
        rmw: Handle,
        sequence: u64,
    },
    TakeRequest {
        rmw: Handle,
        client: [u8; 16],
        sequence: u64,
    },
    Response {
        client: [u8; 16],
        sequence: u64,
    },
    TakeResponse {
        rmw: Handle,
        sequence: u64,
    },
    /// An executor looks for work: what it called has ended.
    Executor,
    Start {
        callback: Handle,
    },
    End {
        callback: Handle,
    },
}

/// What has a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    SubscriptionObject,
    Service,
    Timer,
}

/// A kind of event, and where its fields are.
#[derive(Clone, Copy, Debug)]
struct Kind {
    name: Name,
    fields: [Option<Field>; 4],
    pid: Option<Field>,
    tid: Option<Field>,
    procname: Option<Field>,
}

/// Where an event came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
}

/// All kinds of events of a folder of traces.
pub struct Kinds {
    /// By class; `None` for those that say nothing here.
    kinds: Vec<Option<Kind>>,
    /// Process and name by trace, where each process has its own.
    pids: Vec<Option<u32>>,
}

macro_rules! names {
    ($($name:ident $event:literal [$($field:literal)*];)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Name { $($name),* }

        /// Names of events without their provider, and of the fields that are used.
        const NAMES: &[(&str, Name, &[&str])] = &[$(($event, Name::$name, &[$($field),*])),*];
    };
}

// Where a field has had several names, they stand with a bar between.
names! {
    Node "rcl_node_init" ["node_handle" "node_name" "namespace"];
    Publisher "rcl_publisher_init" ["publisher_handle" "rmw_publisher_handle" "topic_name"];
    Subscription "rcl_subscription_init"
        ["subscription_handle" "node_handle" "rmw_subscription_handle" "topic_name"];
    RmwSubscription "rmw_subscription_init" ["rmw_subscription_handle"];
    SubscriptionObject "rclcpp_subscription_init" ["subscription_handle" "subscription"];
    SubscriptionCallback "rclcpp_subscription_callback_added" ["subscription" "callback"];
    Service "rcl_service_init" ["service_handle" "node_handle" "rmw_service_handle" "service_name"];
    ServiceCallback "rclcpp_service_callback_added" ["service_handle" "callback"];
    Client "rcl_client_init" ["node_handle" "rmw_client_handle" "service_name"];
    ClientId "rmw_client_init" ["rmw_client_handle" "gid"];
    Timer "rcl_timer_init" ["timer_handle" "period"];
    TimerCallback "rclcpp_timer_callback_added" ["timer_handle" "callback"];
    TimerNode "rclcpp_timer_link_node" ["timer_handle" "node_handle"];
    RingBuffer "rclcpp_buffer_to_ipb" ["buffer" "ipb"];
    Buffer "rclcpp_ipb_to_subscription" ["ipb" "subscription"];
    IntraPublish "rclcpp_intra_publish" ["publisher_handle" "message"];
    Publish "rcl_publish" ["publisher_handle" "message"];
    RmwPublish "rmw_publish" ["rmw_publisher_handle" "timestamp"];
    Writer "create_writer" ["writer" "topic_name"];
    Written "write" ["writer" "timestamp"];
    Stamp "dds_bind_addr_to_stamp" ["addr" "source_stamp|source_timestamp"];
    CopyAddress "dds_bind_addr_to_addr" ["addr_from" "addr_to"];
    CopyMessage "message_construct" ["original_message" "constructed_message"];
    Enqueue "rclcpp_ring_buffer_enqueue" ["buffer" "index"];
    Dequeue "rclcpp_ring_buffer_dequeue" ["buffer" "index"];
    Take "rmw_take" ["rmw_subscription_handle" "source_timestamp" "taken"];
    Dispatch "dispatch_subscription_callback" ["callback" "source_stamp|source_timestamp"];
    DispatchIntra "dispatch_intra_process_subscription_callback" ["callback" "message"];
    Request "rmw_send_request" ["rmw_client_handle" "sequence_number"];
    TakeRequest "rmw_take_request" ["rmw_service_handle" "client_gid" "sequence_number" "taken"];
    Response "rmw_send_response" ["client_gid" "sequence_number"];
    TakeResponse "rmw_take_response" ["rmw_client_handle" "sequence_number" "taken"];
    Ready "rclcpp_executor_get_next_ready" [];
    Wait "rclcpp_executor_wait_for_work" [];
    Execute "rclcpp_executor_execute" [];
    Start "callback_start" ["callback"];
    End "callback_end" ["callback"];
}

/// Whether an event is of ROS 2.
pub fn is_ros(class: &Class) -> bool {
    matches!(class.name.split_once(':'), Some(("ros2" | "ros2_caret", _)))
}

/// The event's name without its provider, if it is of ROS 2 or of the middleware below.
fn name_of(class: &Class) -> Option<&str> {
    let (provider, name) = class.name.split_once(':')?;
    let is_middleware = matches!(name, "create_writer" | "write");
    match provider {
        "ros2" | "ros2_caret" => Some(name).filter(|_| !is_middleware),
        "dds" => Some(name).filter(|_| is_middleware),
        _ => None,
    }
}

impl Kinds {
    /// Of all events of a reader; or says what is missing from them.
    pub fn new(reader: &Reader) -> Result<Kinds, String> {
        let pid = |trace| reader.env(trace, "vpid").and_then(|pid| pid.parse().ok());
        let pids: Vec<Option<u32>> = (0..reader.traces()).map(pid).collect();
        let kinds = reader.classes().iter().map(|class| kind(class, &pids));
        Ok(Kinds { kinds: kinds.collect::<Result<_, String>>()?, pids })
    }

    /// Whether some kind of event of this name is declared.
    pub fn has(&self, event: &str) -> bool {
        let names = NAMES.iter().filter(|(name, ..)| *name == event).map(|(_, name, _)| *name);
        names.into_iter().any(|name| self.kinds.iter().flatten().any(|kind| kind.name == name))
    }

    /// What events of a class are read for.
    pub fn used_for(&self, class: usize) -> Option<Use> {
        self.kinds[class].as_ref().map(|kind| kind.name.used_for())
    }

    /// Whether publications have time stamps.
    pub fn has_stamps(&self) -> bool {
        let has = |name, place: usize| {
            self.kinds.iter().flatten().any(|kind| kind.name == name && kind.fields[place].is_some())
        };
        has(Name::RmwPublish, 1) || has(Name::Stamp, 1) || has(Name::Written, 1)
    }

    /// What an event means, and in which thread; `None` if it says nothing here.
    #[inline]
    pub fn call(&self, event: &Event<'_>, reader: &Reader) -> Option<(Thread, Call)> {
        let kind = self.kinds[event.class].as_ref()?;
        let pid = event.unsigned(kind.pid).map(|pid| pid as u32);
        let pid = pid.or_else(|| self.pids[reader.classes()[event.class].trace])?;
        let tid = event.unsigned(kind.tid)? as u32;
        Some((Thread { pid, tid }, kind.call(event)?))
    }

    /// The name of the event's process.
    pub fn procname(&self, event: &Event<'_>) -> Option<String> {
        event.text(self.kinds[event.class].as_ref()?.procname)
    }
}

fn kind(class: &Class, pids: &[Option<u32>]) -> Result<Option<Kind>, String> {
    let Some(event) = name_of(class) else { return Ok(None) };
    let Some((_, name, wanted)) = NAMES.iter().find(|(name, ..)| *name == event) else { return Ok(None) };
    let mut fields = [None; 4];
    for (field, names) in fields.iter_mut().zip(*wanted) {
        *field = names.split('|').find_map(|name| class.field(name));
        // Before Jazzy it had neither.
        if field.is_none() && *name != Name::RmwPublish {
            return Err(format!("its event {} has no field {names}", class.name));
        }
    }
    let (pid, tid) = (class.context("vpid"), class.context("vtid"));
    if tid.is_none() || pid.is_none() && pids[class.trace].is_none() {
        return Err(format!(
            "its events do not say which thread they are of ({}): record with the contexts vpid, vtid and \
             procname, as ros2 trace does, or lttng add-context -u -t vpid -t vtid -t procname",
            class.name
        ));
    }
    Ok(Some(Kind { name: *name, fields, pid, tid, procname: class.context("procname") }))
}

impl Name {
    fn used_for(self) -> Use {
        match self {
            Name::Ready | Name::Wait | Name::Execute | Name::Start | Name::End => Use::Callbacks,
            Name::Node
            | Name::Publisher
            | Name::Subscription
            | Name::RmwSubscription
            | Name::SubscriptionObject
            | Name::SubscriptionCallback
            | Name::Service
            | Name::ServiceCallback
            | Name::Client
            | Name::ClientId
            | Name::Timer
            | Name::TimerCallback
            | Name::TimerNode
            | Name::RingBuffer
            | Name::Buffer
            | Name::Writer => Use::Graph,
            _ => Use::Messages,
        }
    }
}

impl Kind {
    fn call(&self, event: &Event<'_>) -> Option<Call> {
        let number = |place: usize| event.unsigned(self.fields[place]);
        let text = |place: usize| event.text(self.fields[place]);
        let id = |place: usize| event.bytes(self.fields[place])?.first_chunk::<16>().copied();
        Some(match self.name {
            Name::Node => Call::Node { node: number(0)?, name: text(1)?, namespace: text(2)? },
            Name::Publisher => Call::Publisher { publisher: number(0)?, rmw: number(1)?, topic: text(2)? },
            Name::Subscription => Call::Subscription {
                subscription: number(0)?,
                node: number(1)?,
                rmw: number(2)?,
                topic: text(3)?,
            },
            Name::RmwSubscription => Call::RmwSubscription { rmw: number(0)? },
            Name::SubscriptionObject => {
                Call::SubscriptionObject { subscription: number(0)?, object: number(1)? }
            }
            Name::SubscriptionCallback => callback(Owner::SubscriptionObject, number(0)?, number(1)?),
            Name::Service => {
                Call::Service { service: number(0)?, node: number(1)?, rmw: number(2)?, name: text(3)? }
            }
            Name::ServiceCallback => callback(Owner::Service, number(0)?, number(1)?),
            Name::Client => Call::Client { node: number(0)?, rmw: number(1)?, name: text(2)? },
            Name::ClientId => Call::ClientId { rmw: number(0)?, id: id(1)? },
            Name::Timer => Call::Timer { timer: number(0)?, period: number(1)? as i64 },
            Name::TimerCallback => callback(Owner::Timer, number(0)?, number(1)?),
            Name::TimerNode => Call::TimerNode { timer: number(0)?, node: number(1)? },
            Name::RingBuffer => Call::RingBuffer { ring: number(0)?, buffer: number(1)? },
            Name::Buffer => Call::Buffer { buffer: number(0)?, object: number(1)? },
            Name::IntraPublish => Call::IntraPublish { publisher: number(0)?, message: number(1)? },
            Name::Publish => Call::Publish { publisher: number(0)?, message: number(1)? },
            Name::RmwPublish => Call::RmwPublish { rmw: number(0), stamp: number(1).filter(|it| *it != 0) },
            Name::Writer => Call::Writer { writer: number(0)?, topic: text(1)? },
            Name::Written => Call::Written { writer: number(0)?, stamp: number(1)? },
            Name::Stamp => Call::Stamp { message: number(0)?, stamp: number(1)? },
            Name::CopyAddress | Name::CopyMessage => Call::Copy { from: number(0)?, to: number(1)? },
            Name::Enqueue => Call::Enqueue { ring: number(0)?, index: number(1)? },
            Name::Dequeue => Call::Dequeue { ring: number(0)?, index: number(1)? },
            Name::Take if number(2)? == 0 => return None,
            Name::Take => Call::Take { rmw: number(0)?, stamp: number(1)? },
            Name::Dispatch => Call::Dispatch { callback: number(0)?, stamp: number(1)? },
            Name::DispatchIntra => Call::DispatchIntra { callback: number(0)?, message: number(1)? },
            Name::Request => Call::Request { rmw: number(0)?, sequence: number(1)? },
            Name::TakeRequest if number(3)? == 0 => return None,
            Name::TakeRequest => Call::TakeRequest { rmw: number(0)?, client: id(1)?, sequence: number(2)? },
            Name::Response => Call::Response { client: id(0)?, sequence: number(1)? },
            Name::TakeResponse if number(2)? == 0 => return None,
            Name::TakeResponse => Call::TakeResponse { rmw: number(0)?, sequence: number(1)? },
            Name::Ready | Name::Wait | Name::Execute => Call::Executor,
            Name::Start => Call::Start { callback: number(0)? },
            Name::End => Call::End { callback: number(0)? },
        })
    }
}

fn callback(of: Owner, handle: Handle, callback: Handle) -> Call {
    Call::Callback { of, handle, callback }
}
