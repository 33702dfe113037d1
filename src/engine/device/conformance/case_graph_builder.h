// CaseGraphBuilder: writes small graphs for tests.
#ifndef FOLIOT_ENGINE_DEVICE_CONFORMANCE_CASE_GRAPH_BUILDER_H_
#define FOLIOT_ENGINE_DEVICE_CONFORMANCE_CASE_GRAPH_BUILDER_H_

#include <initializer_list>
#include <utility>
#include <vector>

#include "engine/device/conformance/reference.h"
#include "engine/device/graph.h"
#include "foundation/base/random.h"

namespace foliot {

using AttributeList = std::initializer_list<std::pair<const char*, Attribute>>;

// What random values of an array should look like.
struct Range {
  double low = -1, high = 1;
};

// Of an integer type: whole numbers in [low, high].
Array random_array(DataType type, const Shape& shape, Random& random, Range range = {});

class CaseGraphBuilder {
 public:
  explicit CaseGraphBuilder(uint32_t batch_size = 1) { graph_.batch_size = batch_size; }

  ValueIndex input(const Shape& shape, DataType type = DataType::kFloat32);
  ValueIndex constant(const Array& array);
  // The same constant object as another graph's.
  ValueIndex constant(const Value& value);
  ValueIndex node(OperatorKind kind, std::vector<ValueIndex> inputs, const Shape& shape, AttributeList attributes = {},
                  DataType type = DataType::kFloat32, std::vector<PostOperation> post_operations = {});
  // Sets an attribute of the last node.
  void set(const char* name, Attribute value) { graph_.nodes.back().attributes.set(name, std::move(value)); }
  void output(ValueIndex value) { graph_.outputs.push_back(value); }
  const Graph& graph() const { return graph_; }

 private:
  ValueIndex add(Value value);
  Graph graph_;
};

// Rows of JPEGs of so many bytes (engine/device/conformance/tiny_jpeg.h) as images of 4 x 4 pixels.
Graph decoding_graph(uint32_t batch_size, int64_t row_bytes);

PostOperation activation(const char* function, double alpha = 0, double beta = 0);
PostOperation combination(const char* function, uint32_t input);

}  // namespace foliot

#endif  // FOLIOT_ENGINE_DEVICE_CONFORMANCE_CASE_GRAPH_BUILDER_H_
