//! Produce requests that are encoded once and sent many times, and a reader of
//! their answers that allocates nothing.

use millstream::model::Timestamp;
use millstream::record::{BatchBuilder, Compression, NewRecord};
use millstream::wire::frame::write_request;
use millstream::wire::generated::produce::{
    PartitionProduceData, ProduceRequest, TopicProduceData,
};
use millstream::wire::{ApiKey, Reader, ResponseHeader};

use crate::Result;
use crate::plain::{CLIENT_ID, Topic};

/// The newest version, as current clients send it: topics by id.
pub(crate) const PRODUCE_VERSION: i16 = 13;

/// How long an append may wait, in milliseconds.
const TIMEOUT_MS: i32 = 30_000;

/// The requests of a load, one per partition. The correlation id of each is
/// its partition: answers come in order, so that shows which was answered.
pub(crate) struct Templates {
    /// Whole frames.
    pub(crate) frames: Vec<Vec<u8>>,
    /// Bytes of the batch in each.
    pub(crate) batch_bytes: usize,
}

/// What every batch is made of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchShape {
    /// Records in a batch.
    pub(crate) records: u32,
    /// Bytes of each value.
    pub(crate) record_bytes: usize,
}

impl BatchShape {
    /// One batch, whose values are not all alike.
    pub(crate) fn batch(self, now: Timestamp) -> Result<Vec<u8>> {
        let mut builder = BatchBuilder::new(Compression::None);
        let mut value = vec![0; self.record_bytes];
        for number in 0..self.records {
            for (at, byte) in value.iter_mut().enumerate() {
                *byte =
                    b'a' + (at as u32).wrapping_mul(31).wrapping_add(number).rem_euclid(26) as u8;
            }
            builder.push(&NewRecord {
                timestamp: now,
                key: None,
                value: Some(&value),
                headers: &[],
            });
        }
        Ok(builder.build()?)
    }
}

impl Templates {
    /// Encodes a request for each partition of `topic`.
    pub(crate) fn new(
        topic: &Topic,
        partitions: i32,
        shape: BatchShape,
        acks: i16,
        now: Timestamp,
    ) -> Result<Self> {
        let batch = shape.batch(now)?;
        let batch_bytes = batch.len();
        let frame = |index| -> Result<Vec<u8>> {
            let data = PartitionProduceData { index, records: Some(batch.clone().into()) };
            let topic_data = TopicProduceData {
                topic_id: topic.id,
                partition_data: vec![data],
                ..Default::default()
            };
            let request = ProduceRequest {
                transactional_id: None,
                acks,
                timeout_ms: TIMEOUT_MS,
                topic_data: vec![topic_data],
            };
            let mut frame = Vec::new();
            write_request(&mut frame, PRODUCE_VERSION, index, Some(CLIENT_ID), &request)?;
            Ok(frame)
        };
        Ok(Self { frames: (0..partitions).map(frame).collect::<Result<_>>()?, batch_bytes })
    }
}

/// The answer to one template.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Acked {
    /// The partition, as the correlation id says.
    pub(crate) partition: i32,
    /// Kafka's error code.
    pub(crate) error_code: i16,
    /// Offset of the batch's first record.
    pub(crate) base_offset: i64,
}

/// Reads the answer to one template, a frame without its length.
pub(crate) fn read_answer(frame: &[u8]) -> Result<Acked> {
    let mut reader = Reader::new(frame);
    let header = ResponseHeader::read(&mut reader, ApiKey::Produce, PRODUCE_VERSION)?;
    let topics = reader.uvarint()?;
    reader.skip(16)?;
    let partitions = reader.uvarint()?;
    let index = reader.int32()?;
    if (topics, partitions) != (2, 2) || index != header.correlation_id {
        return Err(format!("not the answer to a request of this load: {frame:02x?}").into());
    }
    Ok(Acked { partition: index, error_code: reader.int16()?, base_offset: reader.int64()? })
}

/// The correlation id of a frame without its length, all that `echo` answers.
pub(crate) fn read_echo(frame: &[u8]) -> Result<Acked> {
    let partition = Reader::new(frame).int32()?;
    Ok(Acked { partition, error_code: 0, base_offset: -1 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use millstream::record::BatchView;
    use millstream::wire::frame::write_response;
    use millstream::wire::generated::produce::{
        PartitionProduceResponse, ProduceResponse, TopicProduceResponse,
    };
    use millstream::wire::{Message as _, ProduceView, RequestHeader};

    fn templates() -> Templates {
        let topic = Topic { name: "t".into(), id: [7; 16] };
        let shape = BatchShape { records: 5, record_bytes: 10 };
        Templates::new(&topic, 3, shape, -1, Timestamp(1_000)).unwrap()
    }

    #[test]
    fn a_template_is_a_whole_request_for_its_partition() {
        let templates = templates();
        for (index, frame) in templates.frames.iter().enumerate() {
            let mut reader = Reader::new(&frame[4..]);
            let header = RequestHeader::read(&mut reader).unwrap();
            assert_eq!(header.correlation_id, index as i32);
            let view = ProduceView::parse(reader, header.version).unwrap();
            assert_eq!((view.acks, view.partition_count), (-1, 1));
            let partition = view.topics().next().unwrap().partitions().next().unwrap();
            assert_eq!(partition.index, index as i32);
            let (batch, rest) = BatchView::parse(partition.records.unwrap()).unwrap();
            assert!(batch.verify_crc() && rest == 0);
            assert_eq!((batch.record_count(), batch.length()), (5, templates.batch_bytes));
        }
    }

    #[test]
    fn answers_are_read_where_the_codec_puts_them() {
        let partition = PartitionProduceResponse {
            index: 2,
            error_code: 3,
            base_offset: 77,
            ..Default::default()
        };
        let topic = TopicProduceResponse {
            topic_id: [7; 16],
            partition_responses: vec![partition],
            ..Default::default()
        };
        let mut answer = ProduceResponse { responses: vec![topic], ..Default::default() };
        let mut frame = Vec::new();
        write_response(&mut frame, PRODUCE_VERSION, 2, &answer).unwrap();
        let want = Acked { partition: 2, error_code: 3, base_offset: 77 };
        assert_eq!(read_answer(&frame[4..]).unwrap(), want);
        assert_eq!(read_echo(&frame[4..]).unwrap().partition, 2);
        answer.responses[0].partition_responses[0].index = 1;
        assert_eq!(answer.size(PRODUCE_VERSION) + 5, frame.len() - 4);
        frame.clear();
        write_response(&mut frame, PRODUCE_VERSION, 2, &answer).unwrap();
        assert!(read_answer(&frame[4..]).is_err(), "another partition's answer");
        assert!(read_answer(&frame[4..20]).is_err(), "half an answer");
    }
}
