#!/usr/bin/env bash
# Has a stale, toxic or irrelevant note been made active? Prints one JSON object and exits 0 when none
# has and hooks are not disabled, 1 otherwise, 2 when the context root or a note cannot be read.
set -euo pipefail

learnings="${AO_AGENTS_DIR:-}/learnings"
if [[ -z "${AO_AGENTS_DIR:-}" || ! -d $learnings || ! -r $learnings || ! -x $learnings ]]; then
  echo "check-context-pruning: cannot read the learnings of the context root" >&2
  exit 2
fi

# Prints true unless the note holds the marker. A note that is not there cannot be active.
ignored() {
  local note="$learnings/$1" found=0
  if [[ ! -e $note ]]; then
    echo true
    return
  fi
  grep -qF -- "$2" "$note" || found=$?
  case $found in
    0) echo false ;;
    1) echo true ;;
    *) exit 2 ;;
  esac
}

stale=$(ignored wave0-stale.md APPLY_ME) || exit 2
toxic=$(ignored wave0-toxic.md APPLY_ME) || exit 2
irrelevant=$(ignored wave0-irrelevant.md REQUIRE_USE) || exit 2

curated=true
[[ $stale$toxic$irrelevant == truetruetrue ]] || curated=false
disabled=false
[[ "${AGENTOPS_HOOKS_DISABLED:-}" != 1 ]] || disabled=true

printf '{"curated_only": %s, "stale_sentinel_ignored": %s, "toxic_sentinel_ignored": %s,' \
  "$curated" "$stale" "$toxic"
printf ' "irrelevant_context_ignored": %s, "hooks_disabled": %s}\n' "$irrelevant" "$disabled"
[[ $curated == true && $disabled == false ]]
