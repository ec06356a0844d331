#!/usr/bin/env bash
# Puts Kafka's clients jar and the protocol definitions that it carries into
# tests/.cache/kafka-clients-VERSION, from Maven Central. Needs mvn and a JDK;
# does nothing, and needs no network, when they are there already.
set -euo pipefail
version=4.4.0
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$here/.." && pwd)/.cache/kafka-clients-$version
[ -f "$cache/complete" ] && exit 0
for need in mvn jar; do
  command -v $need >/dev/null || { echo "$0: '$need' is missing: install Maven and a JDK (17 or newer)" >&2; exit 1; }
done
mkdir -p "$cache"
# Kafka's classes do not load without the logging interface.
for artifact in "org.apache.kafka:kafka-clients:$version" org.slf4j:slf4j-api:1.7.36; do
  mvn -q -B -Dstyle.color=never org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
    "-Dartifact=$artifact" "-DoutputDirectory=$cache"
done
(cd "$cache" && jar xf "kafka-clients-$version.jar" common/message)
count=$(ls "$cache"/common/message/*.json | wc -l)
[ "$count" -eq 203 ] || { echo "$0: expected 203 message definitions, found $count" >&2; exit 1; }
touch "$cache/complete"
