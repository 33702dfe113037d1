// read_xml_leaves(): the elements of a small XML document with their paths, for answers of servers.
//
// It knows elements, attributes (which it skips), character references, the five named entities, comments, CDATA and
// processing instructions. A document type is refused, and with it all entities that a document could define.
#ifndef FOLIOT_FOUNDATION_OBJECTSTORE_XML_LEAVES_H_
#define FOLIOT_FOUNDATION_OBJECTSTORE_XML_LEAVES_H_

#include <functional>
#include <string>
#include <string_view>

#include "foundation/base/status.h"

namespace foliot {

// Calls `on_end` at the end of each element with its path ("ListBucketResult/Contents/Key") and, if it has no elements
// in it, its text. Its failure ends the reading and is returned. Errors: kInvalidArgument saying what is wrong, for
// elements that do not close, nest more than 32 deep, or what is no XML. Any thread.
using OnXmlEnd = std::function<Status(std::string_view path, const std::string& text)>;
Status read_xml_leaves(std::string_view xml, const OnXmlEnd& on_end);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_OBJECTSTORE_XML_LEAVES_H_
