#!/bin/sh
# Starts compose.yaml; the first time it makes the secrets, in .data/compose.env (mode 0600, git-ignored). Arguments go to
# `docker compose`; without any: up --build --detach --wait.
set -eu
cd "$(dirname "$0")/../.."
file=.data/compose.env
if [ ! -f "$file" ]; then
  mkdir -p .data
  umask 077
  {
    echo "POSTGRES_PASSWORD=$(openssl rand -hex 24)"
    echo "ADMIN_TOKENS=portal:$(openssl rand -hex 24)"
    echo "SECRETS_KEYS=first:$(openssl rand -base64 32)"
  } >"$file"
  echo "secrets are in $file" >&2
fi
[ $# -gt 0 ] || set -- up --build --detach --wait
exec docker compose --env-file "$file" "$@"
