#!/usr/bin/env bash
# vectors.sh write: makes tests/wire/vectors.txt with Kafka's own encoder.
# vectors.sh check: fails when the committed file is not what that makes.
# One line per message: api, request or response, version, style, bytes in hex.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
"$here/fetch-kafka-clients.sh"
jars=$(echo "$here"/../.cache/kafka-clients-*)
keys=$(sed -n 's/^key //p' "$here"/../../src/wire/schema/*.txt | sort -n | paste -sd, -)
make_vectors() { java -cp "$jars/*" "$here/Vectors.java" "$keys"; }
case ${1:-} in
write) make_vectors >"$here/vectors.txt" ;;
check)
  made=$(mktemp)
  trap 'rm -f "$made"' EXIT
  make_vectors >"$made"
  cmp "$made" "$here/vectors.txt" || { echo "stale: run tests/wire/vectors.sh write" >&2; exit 1; }
  ;;
*) echo "usage: $0 write|check" >&2; exit 2 ;;
esac
