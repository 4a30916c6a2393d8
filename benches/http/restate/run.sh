#!/usr/bin/env bash
# Starts a Restate server and its service in a scratch folder and compares: the arguments go to `http-bench rate`.
# Needs node and npm, fetches the packages below. No part of any check.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
scratch="$(mktemp -d)"
started=()
trap '((${#started[@]})) && kill "${started[@]}"; wait; rm -rf "$scratch"' EXIT

cp "$here/service.mjs" "$scratch/"
cd "$scratch"
npm install --silent --no-audit --no-fund @restatedev/restate-server@1.7.12 @restatedev/restate-sdk@1.17.2
node service.mjs >service.log 2>&1 &
started+=($!)
# The binary itself: a wrapper would not pass the signal on.
server=(node_modules/@restatedev/restate-server-*/bin/restate-server)
DO_NOT_TRACK=1 RESTATE_LOG_FILTER=error "${server[0]}" --base-dir "$scratch/data" >server.log 2>&1 &
started+=($!)

answers() { curl --silent --fail --output /dev/null --max-time 5 "$@"; }
registered=
for _ in $(seq 60); do
    if answers localhost:9070/deployments --json '{"uri":"http://localhost:9080"}'; then
        registered=1
        break
    fi
    sleep 1
done
[[ $registered ]] || { cat server.log service.log; exit 1; }
cd "$here/../../.."
cargo run --quiet --release --package sealog-http-bench -- rate --restate 127.0.0.1:8080 "$@"
