# Writes OUTPUT, a source that defines page_files() (observe/monitor/page_file.h) as FILES.
set(arrays "")
set(table "")
set(number 0)
foreach(file IN LISTS FILES)
  get_filename_component(name ${file} NAME)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND arrays "constexpr char kFile${number}[] = {${bytes}};\n")
  string(APPEND table "    {\"${name}\", {kFile${number}, sizeof(kFile${number})}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "#include \"observe/monitor/page_file.h\"

namespace foliot {
namespace {

${arrays}
constexpr PageFile kFiles[] = {
${table}};

}  // namespace

std::span<const PageFile> page_files() { return kFiles; }

}  // namespace foliot
")
