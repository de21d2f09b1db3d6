#!/usr/bin/env bash
# one.sh <prompt> <file>: one run by curl and jq.
set -euo pipefail
ask() { curl -sS --fail --retry 5 -H "Authorization: Bearer $API_KEY" "$@"; }

id=$(jq -n --arg prompt "$1" '{model: "acme/still-1", input: {$prompt}}' |
  ask "$BASE_URL/api/v1/runs" -H 'Content-Type: application/json' -d @- | jq -er .id)
until [ "${status:-queued}" = succeeded ]; do
  sleep 1
  run=$(ask "$BASE_URL/api/v1/runs/$id")
  status=$(jq -r .status <<<"$run")
  [ "$status" != failed ] || exit 1
done
curl -sS --fail -o "$2" "$(jq -r '.output.urls[0]' <<<"$run")"
