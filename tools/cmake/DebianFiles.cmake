# Run by cpack before it packs: Debian has the text of the licence already.
file(REMOVE ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc/dtrain/LICENSE)
