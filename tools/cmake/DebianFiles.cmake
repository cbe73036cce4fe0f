# cpack runs this before it packs: it removes the licence's text, which Debian has already.
file(REMOVE ${CPACK_TEMPORARY_DIRECTORY}/usr/share/doc/dtrain/LICENSE)
