#include "engine/compiler/node_order.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

OnnxNode node_from(std::vector<std::string> inputs, std::string output) {
  OnnxNode node;
  node.inputs = std::move(inputs);
  node.outputs = {std::move(output)};
  return node;
}

std::string order_of(std::vector<OnnxNode> nodes) {
  sort_nodes(&nodes);
  std::string order;
  for (const OnnxNode& node : nodes) order += node.outputs[0];
  return order;
}

TEST(NodeOrder, IsKeptWhereItIsRight) {
  EXPECT_EQ(order_of({node_from({"x"}, "b"), node_from({"b"}, "a"), node_from({"x"}, "c")}), "bac");
}

TEST(NodeOrder, PutsANodeBehindThoseThatItUses) {
  EXPECT_EQ(order_of({node_from({"b", "c"}, "a"), node_from({"c"}, "b"), node_from({"x"}, "c"), node_from({}, "d")}),
            "cbad");
}

TEST(NodeOrder, SeesNamesWithinBodies) {
  OnnxNode user = node_from({"x"}, "a");
  OnnxGraph body;
  body.nodes = {node_from({"b"}, "inner")};
  user.attributes.emplace("body", std::make_shared<const OnnxGraph>(std::move(body)));
  EXPECT_EQ(order_of({user, node_from({"x"}, "b")}), "ba");
}

TEST(NodeOrder, LeavesNodesThatWaitForOneAnotherAtTheEnd) {
  EXPECT_EQ(order_of({node_from({"b"}, "a"), node_from({"a"}, "b"), node_from({"d"}, "c"), node_from({"x"}, "d")}),
            "dcab");
}

}  // namespace
}  // namespace foliot
