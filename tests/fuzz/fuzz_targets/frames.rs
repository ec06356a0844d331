//! Any bytes as a frame: they are decoded or refused, without a panic and
//! without memory that the frame does not pay for. What is decoded is written
//! again and must come back the same; the two hand-written views must agree
//! with the generated code on what is a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use millstream::for_each_api;
use millstream::wire::fetch::FetchWalk;
use millstream::wire::generated::*;
use millstream::wire::{
    FetchView, Message, ProduceView, ProduceWalk, Reader, RequestHeader, RequestPrefix,
    ResponseHeader,
};

fuzz_target!(|frame: &[u8]| {
    let Some((side, frame)) = frame.split_first() else { return };
    if side & 1 == 0 { read_request(frame) } else { read_response(frame) }
});

fn read_request(frame: &[u8]) {
    let mut reader = Reader::new(frame);
    let Ok(prefix) = RequestPrefix::read(&mut reader) else { return };
    let Ok(header) = RequestHeader::read_after(prefix, &mut reader) else { return };
    let (version, body) = (header.version, reader.rest());
    macro_rules! requests {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match header.key {
                $(ApiKey::$api => { recode::<$module::$request>(body, version); })*
                #[allow(unreachable_patterns)]
                _ => {}
            }
        };
    }
    for_each_api!(requests);
    match header.key {
        ApiKey::Produce => {
            let view = ProduceView::parse(Reader::new(body), version);
            if let Ok(view) = &view {
                for topic in view.topics() {
                    assert!(topic.partitions().all(|_| true));
                }
                // As the broker goes through it, stopped before every step.
                let mut walk = view.walk();
                loop {
                    walk = ProduceWalk::resume(body, walk.place());
                    if walk.next_partition().is_none() && walk.next_topic().is_none() {
                        break;
                    }
                }
            }
            agree::<produce::ProduceRequest>(view.is_ok(), body, version);
        }
        ApiKey::Fetch => {
            let view = FetchView::parse(Reader::new(body), version);
            if let Ok(view) = &view {
                for topic in view.topics() {
                    assert!(topic.partitions().all(|_| true));
                }
                for topic in view.forgotten() {
                    assert!(topic.partitions().all(|_| true));
                }
                let mut walk = view.walk();
                loop {
                    walk = FetchWalk::resume(body, walk.place());
                    if walk.next().is_none() {
                        break;
                    }
                }
            }
            agree::<fetch::FetchRequest>(view.is_ok(), body, version);
        }
        _ => {}
    }
}

/// A frame of a broker, after the key and the version that it answers.
fn read_response(frame: &[u8]) {
    let mut reader = Reader::new(frame);
    let (Ok(key), Ok(version)) = (reader.int16(), reader.int16()) else { return };
    let Some(key) = ApiKey::from_code(key) else { return };
    if ResponseHeader::read(&mut reader, key, version).is_err() {
        return;
    }
    let body = reader.rest();
    macro_rules! responses {
        ($(($api:ident, $module:ident, $request:ident, $response:ident))*) => {
            match key {
                $(ApiKey::$api => { recode::<$module::$response>(body, version); })*
                #[allow(unreachable_patterns)]
                _ => {}
            }
        };
    }
    for_each_api!(responses);
}

fn recode<M: Message>(body: &[u8], version: i16) {
    let Ok(message) = M::decode(Reader::new(body), version) else { return };
    let bytes = message.encode(version).expect("what was read can be written");
    assert_eq!(bytes.len(), message.size(version));
    let again = M::decode(Reader::new(&bytes), version).expect("what was written can be read");
    // Floating point fields may be NaN, which equals nothing: compare bytes.
    assert_eq!(again.encode(version).expect("as before"), bytes);
}

fn agree<M: Message>(view: bool, body: &[u8], version: i16) {
    let generated = M::decode(Reader::new(body), version);
    assert_eq!(view, generated.is_ok(), "version {version}: {:?}", generated.err());
}
