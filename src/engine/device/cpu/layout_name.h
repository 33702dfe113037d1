// The name of a layout, for people.
#ifndef FOLIOT_ENGINE_DEVICE_CPU_LAYOUT_NAME_H_
#define FOLIOT_ENGINE_DEVICE_CPU_LAYOUT_NAME_H_

#include <string>

namespace foliot {

// oneDNN's name for what Tensor::layout of this device holds: "dense", or e.g.
// "aBcd16b" for channels (b) in blocks of 16, "acdb" for channels last; "damaged"
// for bytes that are no layout.
std::string layout_name(const std::string& layout);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CPU_LAYOUT_NAME_H_
