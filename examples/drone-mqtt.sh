#!/usr/bin/env bash
# A drone behind an MQTT broker: it reports once a second, flies the missions that it is sent,
# and goes on with its mission after a restart. It needs bash, jq, mosquitto_pub and mosquitto_sub.
#   Usage: drone-mqtt.sh DRONE LAT LON, with MQTT_HOST, MQTT_PORT, MQTT_USER and MQTT_PASSWORD
set -euo pipefail
if [[ ${1:-} == --help ]]; then sed -n '2,4s/^# *//p' "$0"; exit; fi
drone=${1:?the id of the drone} lat=${2:?its latitude} lon=${3:?its longitude}
tick=${TICK:-1} step=${STEP:-60} # seconds between reports, and metres flown between them
broker=(-V 5 -h "${MQTT_HOST:-localhost}" -p "${MQTT_PORT:-1883}" -q 1)
[[ -z ${MQTT_USER:-} ]] || broker+=(-u "$MQTT_USER" -P "${MQTT_PASSWORD:-}")
json=(-D publish content-type application/json)
begun='' mission='' count=0 route='[]' ended='' resumed='' reached='' until='' session=$RANDOM$RANDOM
link() { printf '{"droneId": "%s", "sessionId": "%s", "status": "%s", "time": "%s"}' "$drone" "$session" "$1" "$(date -u +%FT%TZ)"; }

# The session outlives a disconnection, so that commands wait in the broker, which says LOST then.
exec 3< <(exec mosquitto_sub "${broker[@]}" -d -i "drone-$drone" -c -x 300 -F '%t %p' -t "fleet/$drone/missions" -t "fleet/$drone/answers" \
  --will-topic "fleet/$drone/link" --will-payload "$(link LOST)" --will-qos 1)
subscriber=$!; trap 'kill $subscriber 2>/dev/null' EXIT; trap 'exit 130' INT TERM

say() { printf '%s %s\n' "$drone" "$*" >&2; }

# send TOPIC JSON succeeds once a gateway's session has the message: PUBACK with reason 0.
send() { [[ $(mosquitto_pub "${broker[@]}" "${json[@]}" -d -t "fleet/$drone/$1" -m "$2" 2>/dev/null) == *PUBACK*RC:0* ]]; }

take() { # a mission's JSON, the stops completed, and when the command expires
  mission=$(jq -r .id <<<"$1") route=$(jq -c .route <<<"$1") count=$2 until=$3 reached=''
  say "takes $mission with $count stops completed"
}

hear() { # a topic and a payload
  case $1 in
    Client) [[ $2 != *'received CONNACK (0)' ]] || { resumed=''; send link "$(link OPENED)" || true; } ;;
    */missions)
      id=$(jq -r .mission.id <<<"$2") expires=$(jq -r '.expiresAt // "9999"' <<<"$2")
      if [[ $(jq -r '.revoke // false' <<<"$2") == true ]]; then
        ended+=" $id "
        # What is left is the way home.
        if [[ $id == "$mission" ]]; then say "gives $id up"; mission='' count=0 reached='' route=$(jq -c '.[-1:]' <<<"$route"); fi
      elif [[ $ended == *" $id "* || $expires < $(date -u +%FT%TZ) ]] || ! jq -e '.mission.status == "ACTIVE"' <<<"$2" >/dev/null; then
        say "ignores $id: it has ended, or the command came too late"
      elif [[ $id == "$mission" ]]; then # again, or without stops of an order that was withdrawn
        [[ ! $expires > $until ]] || take "$(jq -c .mission <<<"$2")" "$count" "$expires"
      elif [[ -z $mission ]] || ((count >= $(jq 'length - 1' <<<"$route"))); then # also on the way home
        ended+=" $mission "
        take "$(jq -c .mission <<<"$2")" 0 "$expires"
      fi ;;
    */answers)
      jq -e .refusal <<<"$2" >/dev/null && say "is refused: $(jq -r '.refusal | .reason + ": " + .text' <<<"$2")"
      jq -e .resume <<<"$2" >/dev/null || return 0
      resumed=yes id=$(jq -r '.resume.mission.id // ""' <<<"$2")
      if [[ -n $id && -z $mission && $ended != *" $id "* ]]; then
        take "$(jq -c .resume.mission <<<"$2")" "$(jq -r '.resume.completedStops // 0' <<<"$2")" ''
      fi ;;
  esac
  return 0
}

# fly moves towards the first stop of the route that is not completed; all of them count, also the
# start and the return. A stop is completed in the report after the one from there.
fly() {
  local to far
  if [[ $reached == yes ]]; then
    reached='' count=$((count + 1))
    say "has completed stop $count of ${mission:-the way home}"; return
  fi
  to=$(jq -c --argjson n "$count" '.[$n].position // empty' <<<"$route")
  if [[ -z $to ]]; then # the last report has the whole count
    say "has flown $mission"; ended+=" $mission " mission='' route='[]'; return
  fi
  read -r lat lon far < <(jq -rn --argjson to "$to" --argjson lat "$lat" --argjson lon "$lon" --argjson step "$step" '
    ($to.lat - $lat) as $y | ($to.lon - $lon) as $x | (111195 * ($y * $y + ($x * ($lat * 0.0174533 | cos)) * ($x * ($lat * 0.0174533 | cos)) | sqrt)) as $far
    | if $far <= $step then "\($to.lat) \($to.lon) 0" else "\($lat + $y * $step / $far) \($lon + $x * $step / $far) 1" end')
  if [[ $far == 0 ]]; then reached=yes; fi
}

report() {
  local status=IDLE; [[ $route == '[]' ]] || status=MOVING
  jq -cn --arg id "$drone" --arg now "$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)" --argjson lat "$lat" --argjson lon "$lon" --arg status "$status" \
    --arg mission "$mission" --argjson count "$count" \
    '{droneId: $id, timestamp: $now, position: {lat: $lat, lon: $lon}, batteryPercentage: 90, status: $status}
     + if $mission == "" then {} else {currentMissionId: $mission, completedStops: $count} end'
}

listen() { # until nothing comes for a tick
  local line
  while IFS= read -r -t "$tick" line <&3; do
    line=$begun$line begun=''
    hear "${line%% *}" "${line#* }"
  done
  begun+=$line # of a message that is still coming
  kill -0 "$subscriber" 2>/dev/null || { say "has no connection to the broker"; exit 1; }
}

while :; do
  listen
  [[ -n $resumed ]] || send hello "{\"droneId\": \"$drone\"}" || true # again until it is answered
  [[ $route == '[]' ]] || fly
  until send telemetry "$(report)"; do say "keeps its report: no gateway has it"; sleep "$tick"; done
done
