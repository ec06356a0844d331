import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.NavigableMap;
import java.util.TreeMap;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.ApiMessageType;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.ObjectSerializationCache;
import org.apache.kafka.common.protocol.types.BoundField;
import org.apache.kafka.common.protocol.types.Field;
import org.apache.kafka.common.protocol.types.Schema;
import org.apache.kafka.common.protocol.types.Struct;
import org.apache.kafka.common.protocol.types.TaggedFields;
import org.apache.kafka.common.protocol.types.Type;
import org.apache.kafka.common.record.internal.MemoryRecords;

/**
 * Prints every version of the messages of the given API keys as Kafka's own
 * code encodes them, in three styles: "full" sets every field to a value that
 * occurs nowhere else in the message, "null" leaves out whatever may be left
 * out, "empty" has empty arrays, strings and byte fields. Values go in through
 * the message's schema; the printed bytes come out of its generated class.
 */
public final class Vectors {
    private enum Style { FULL, NULL, EMPTY }

    private final Style style;
    private int counter;

    private Vectors(Style style) {
        this.style = style;
    }

    public static void main(String[] args) {
        for (String key : args[0].split(",")) {
            ApiMessageType type = ApiMessageType.fromApiKey(Short.parseShort(key));
            headers(type);
            messages(type, "request", type.requestSchemas());
            messages(type, "response", type.responseSchemas());
        }
    }

    private static void headers(ApiMessageType type) {
        for (short v = type.lowestSupportedVersion(); v <= type.highestSupportedVersion(true); v++) {
            System.out.printf("%s headers %d - %02x%02x%n", type.name, v,
                type.requestHeaderVersion(v), type.responseHeaderVersion(v));
        }
    }

    private static void messages(ApiMessageType type, String role, Schema[] schemas) {
        for (short version = 0; version < schemas.length; version++) {
            if (schemas[version] == null) {
                continue;
            }
            for (Style style : Style.values()) {
                Struct values = new Vectors(style).struct(schemas[version]);
                ByteBuffer in = ByteBuffer.allocate(schemas[version].sizeOf(values));
                schemas[version].write(in, values);
                in.flip();
                ApiMessage message = role.equals("request") ? type.newRequest() : type.newResponse();
                message.read(new ByteBufferAccessor(in), version);
                if (in.hasRemaining()) {
                    throw new IllegalStateException(type.name + " " + version + " is not read to its end");
                }
                ObjectSerializationCache cache = new ObjectSerializationCache();
                ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
                message.write(new ByteBufferAccessor(out), cache, version);
                if (out.hasRemaining()) {
                    throw new IllegalStateException(type.name + " " + version + " announces a wrong size");
                }
                System.out.printf("%s %s %d %s %s%n", type.name, role, version,
                    style.name().toLowerCase(), HexFormat.of().formatHex(out.array()));
            }
        }
    }

    private Struct struct(Schema schema) {
        Struct struct = new Struct(schema);
        for (BoundField field : schema.fields()) {
            struct.set(field, value(field.def.type, field.def.name));
        }
        return struct;
    }

    private Object value(Type type, String name) {
        if (type instanceof TaggedFields tagged) {
            NavigableMap<Integer, Object> values = new TreeMap<>();
            if (style == Style.FULL) {
                for (var entry : tagged.fields().entrySet()) {
                    Field field = entry.getValue();
                    values.put(entry.getKey(), value(field.type, field.name));
                }
            }
            return values;
        }
        if (style == Style.NULL && type.isNullable()) {
            return null;
        }
        if (type.arrayElementType().isPresent()) {
            int count = style == Style.EMPTY ? 0 : 2;
            Object[] elements = new Object[count];
            for (int i = 0; i < count; i++) {
                elements[i] = value(type.arrayElementType().get(), name);
            }
            return elements;
        }
        if (type instanceof Schema schema) {
            return struct(schema);
        }
        counter++;
        boolean empty = style == Style.EMPTY;
        return switch (type.toString().replace("COMPACT_", "").replace("NULLABLE_", "")) {
            case "BOOLEAN" -> !empty;
            case "INT8" -> (byte) (empty ? 0 : counter % 127);
            case "INT16" -> (short) (empty ? 0 : 1000 + counter);
            case "UINT16" -> empty ? 0 : 40000 + counter;
            case "INT32" -> empty ? 0 : 70000000 + counter;
            case "UINT32" -> empty ? 0L : 3000000000L + counter;
            case "INT64" -> empty ? 0L : 5000000000000L + counter;
            case "FLOAT64" -> empty ? 0.0 : counter + 0.5;
            case "UUID" -> empty ? Uuid.ZERO_UUID : new Uuid(0x1122334455667788L + counter, counter);
            case "STRING" -> empty ? "" : name + "-\u00e9\u20ac\ud83d\ude00-" + counter;
            case "BYTES" -> ByteBuffer.wrap(bytes(empty));
            case "RECORDS" -> MemoryRecords.readableRecords(ByteBuffer.wrap(bytes(empty)));
            default -> throw new IllegalStateException("no value for type " + type);
        };
    }

    private byte[] bytes(boolean empty) {
        byte[] bytes = new byte[empty ? 0 : 140];
        Arrays.fill(bytes, (byte) counter);
        return bytes;
    }
}
