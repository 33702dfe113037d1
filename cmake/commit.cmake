# Writes the header OUTPUT with the commit of SOURCE, or with COMMIT if that is given. A header that says so already is left
# alone, so that nothing is compiled anew.
if(NOT COMMIT)
  execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=+
    OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT COMMIT)
  set(COMMIT unknown)
endif()
set(content "#define FOLIOT_COMMIT \"${COMMIT}\"\n")
set(present "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} present)
endif()
if(NOT present STREQUAL content)
  file(WRITE ${OUTPUT} ${content})
endif()
