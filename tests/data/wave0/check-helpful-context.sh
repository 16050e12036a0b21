#!/usr/bin/env bash
# Is the helpful marker in the context root? Exits 0 only when the variant is context_on, the marker
# was found and hooks are not disabled; 1 otherwise. Prints one JSON object either way.
set -euo pipefail

case "${AO_CONTEXT_VARIANT:-}" in
  context_on | context_off) variant=$AO_CONTEXT_VARIANT ;;
  # Anything else might break the JSON below.
  *) variant=unknown ;;
esac

helpful=false
if [[ -n "${AO_AGENTS_DIR:-}" ]] &&
  grep -qsF WAVE0_HELPFUL -- "$AO_AGENTS_DIR/learnings/wave0-helpful.md"; then
  helpful=true
fi

disabled=false
[[ "${AGENTOPS_HOOKS_DISABLED:-}" != 1 ]] || disabled=true

printf '{"variant": "%s", "helpful_context": %s, "hooks_disabled": %s}\n' \
  "$variant" "$helpful" "$disabled"
[[ $variant == context_on && $helpful == true && $disabled == false ]]
