#!/bin/sh
# Runs a test that mounts a small disk: with_mounts.sh COMMAND. As root where that may mount; else as root of a user
# namespace of its own, which needs no rights. Where neither is possible the test says so and fails.
folder=$(mktemp -d)
trap 'rmdir "$folder"' EXIT
if mount -t tmpfs tmpfs "$folder" 2>/dev/null; then
  umount "$folder"
  "$@"
else
  unshare --user --map-root-user --mount "$@"
fi
