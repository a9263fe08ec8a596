#!/bin/sh
# Runs a test that mounts a small disk: with_mounts.sh COMMAND. As root if root may mount; otherwise as root of its own
# user namespace, which needs no rights. If neither is possible, it prints an error and fails.
folder=$(mktemp -d)
trap 'rmdir "$folder"' EXIT
if mount -t tmpfs tmpfs "$folder" 2>/dev/null; then
  umount "$folder"
  "$@"
else
  unshare --user --map-root-user --mount "$@"
fi
