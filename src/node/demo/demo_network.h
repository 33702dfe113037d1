// The network of `foliot demo`: an image of 32 x 32 pixels to ten scores, with weights drawn from a seed. It computes
// some milliseconds, so that a load generator beside it can ask three times of what a machine can answer.
#ifndef FOLIOT_NODE_DEMO_DEMO_NETWORK_H_
#define FOLIOT_NODE_DEMO_DEMO_NETWORK_H_

#include <string>

namespace foliot {

// The content of its ONNX file, always the same.
std::string demo_network();

}  // namespace foliot

#endif  // FOLIOT_NODE_DEMO_DEMO_NETWORK_H_
