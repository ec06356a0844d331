import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Properties;
import java.util.Scanner;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Records as text: `Records produce BOOTSTRAP TOPIC PARTITION CODEC` reads lines, `Records consume BOOTSTRAP TOPIC
 * PARTITION` writes them. A line is TIMESTAMP KEY VALUE [HEADER VALUE]..., bytes as hexadecimal after an `x`, null as
 * a minus sign. Header keys are text, since the Java client has no other.
 */
public final class Records {
    private Records() {}

    public static void main(String[] args) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", args[1]);
        TopicPartition partition = new TopicPartition(args[2], Integer.parseInt(args[3]));
        if (args[0].equals("produce")) {
            properties.put("compression.type", args[4]);
            produce(properties, partition);
        } else {
            consume(properties, partition);
        }
    }

    private static void produce(Properties properties, TopicPartition to) throws Exception {
        try (var producer = new KafkaProducer<>(properties, new ByteArraySerializer(), new ByteArraySerializer());
                Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8)) {
            while (lines.hasNextLine()) {
                String[] fields = lines.nextLine().split(" ");
                List<Header> headers = new ArrayList<>();
                for (int i = 3; i < fields.length; i += 2) {
                    headers.add(new RecordHeader(new String(bytes(fields[i]), StandardCharsets.UTF_8), bytes(fields[i + 1])));
                }
                long timestamp = Long.parseLong(fields[0]);
                producer.send(new ProducerRecord<>(to.topic(), to.partition(), timestamp, bytes(fields[1]),
                        bytes(fields[2]), headers)).get();
            }
        }
    }

    private static void consume(Properties properties, TopicPartition from) {
        try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(from));
            consumer.seekToBeginning(List.of(from));
            long end = consumer.endOffsets(List.of(from)).get(from);
            while (consumer.position(from) < end) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(1))) {
                    StringBuilder line = new StringBuilder();
                    line.append(record.timestamp()).append(' ').append(text(record.key()));
                    line.append(' ').append(text(record.value()));
                    for (Header header : record.headers()) {
                        line.append(' ').append(text(header.key().getBytes(StandardCharsets.UTF_8)));
                        line.append(' ').append(text(header.value()));
                    }
                    System.out.println(line);
                }
            }
        }
    }

    private static byte[] bytes(String field) {
        return field.equals("-") ? null : HexFormat.of().parseHex(field.substring(1));
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "-" : "x" + HexFormat.of().formatHex(bytes);
    }
}
