#!/usr/bin/env bash
# Orders a delivery over HTTP, follows it, changes it and cancels it. See docs/api.md, "Ordering".
set -euo pipefail

api=${API:-http://127.0.0.1:8080}

usage() {
  cat <<'TEXT'
Usage: hospital.sh COMMAND

  order LAT LON PRODUCT [FIELD=VALUE...]  order a delivery; prints the order's id
  show ID                                 say where an order stands
  follow ID                               say it again whenever it changes, until the order is over
  list [STATUS]                           list the own orders
  change ID FIELD=VALUE... REASON         change priority or deadline
  cancel ID REASON                        cancel an order that no drone carries yet

Fields are those of the API, such as priority=CRITICAL, packageWeightKg=1.5, requiresColdChain=true,
deadline=2026-11-27T12:00:00Z or id=O-17. Without an id, the same KEY makes the same order.

Environment:
  API    the State Manager; default http://127.0.0.1:8080
  TOKEN  an API key of the role requester (statemanager keys create --role=requester), or a token
  KEY    the idempotency key of an order; default a new one, which is printed if the order fails
TEXT
}

# call METHOD PATH [BODY [HEADER]] prints the answer. It fails with the problem that the API names.
call() {
  curl --silent --show-error --fail-with-body --max-time 30 --request "$1" "$api/api/v1$2" \
    --header "Authorization: Bearer ${TOKEN:?set TOKEN to an API key or a token}" \
    --header "Content-Type: application/json" ${3:+--data "$3"} ${4:+--header "$4"} || {
    local code=$?
    echo >&2
    return "$code"
  }
}

# text FIELD prints the first value of a field that is text.
text() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" | head -n 1; }

# need EXPRESSION ends with the usage unless it is true.
need() { (($1)) || { usage >&2; exit 2; }; }

# fields FIELD=VALUE... prints them as JSON; two fields of the API are no text.
fields() {
  local field value out=
  for field; do
    value=${field#*=}
    [[ $field =~ ^(packageWeightKg|requiresColdChain)= ]] || value="\"${value//\"/\\\"}\""
    out+=", \"${field%%=*}\": $value"
  done
  printf '%s' "${out:2}"
}

# order repeats the request while there is no answer or the API is busy: with the same key, or id,
# that makes no second order.
order() {
  local lat=$1 lon=$2 product=$3 key=${KEY:-$(date +%s)-$RANDOM$RANDOM} more answer
  shift 3
  more=$(fields "productType=$product" "$@")
  for wait in 1 2 4 8 0; do
    if answer=$(call POST /orders "{\"deliveryLocation\": {\"lat\": $lat, \"lon\": $lon}, $more}" "Idempotency-Key: $key"); then
      text id <<<"$answer"
      return
    fi
    [[ $answer =~ \"status\":(429|503) || -z $answer ]] || break
    ((wait > 0)) && sleep "$wait"
  done
  echo "$answer" >&2
  echo "The order may have been taken. Try again with KEY=$key." >&2
  return 1
}

follow() {
  local before= now answer
  while answer=$(call GET "/orders/$1") || { echo "$answer" >&2; return 1; }; do
    now=$(text summary <<<"$answer")
    [[ $now == "$before" ]] || echo "$now"
    before=$now
    [[ $(text status <<<"$answer") =~ ^(DELIVERED|CANCELLED)$ ]] && return
    sleep 2
  done
}

case ${1:-} in
  order) need "$# >= 4"; order "${@:2}" ;;
  show) need "$# == 2"; call GET "/orders/$2" | text summary ;;
  follow) need "$# == 2"; follow "$2" ;;
  list) call GET "/orders${2:+?status=$2}" ;;
  change) need "$# >= 4"; call PATCH "/orders/$2" "{$(fields "${@:3:$#-3}" "reason=${!#}")}" ;;
  cancel) need "$# == 3"; call POST "/orders/$2/cancel" "{$(fields "reason=$3")}" ;;
  --help | -h | help) usage ;;
  *) usage >&2; exit 2 ;;
esac
