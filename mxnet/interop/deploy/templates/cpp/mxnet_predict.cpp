// MXNet's C predict API over ONNX Runtime; see mxnet_predict.h.
#include "mxnet_predict.h"

#include <onnxruntime_cxx_api.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

thread_local std::string last_error;

template <typename Function>
int guard(Function&& run) {
  try {
    run();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown error";
  }
  return -1;
}

// Calls a function with a null pointer of the C++ type of an element type.
template <typename Function>
void with_type(ONNXTensorElementDataType type, Function&& call) {
  switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT: return call(static_cast<float*>(nullptr));
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE: return call(static_cast<double*>(nullptr));
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64: return call(static_cast<int64_t*>(nullptr));
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32: return call(static_cast<int32_t*>(nullptr));
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8: return call(static_cast<int8_t*>(nullptr));
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8: return call(static_cast<uint8_t*>(nullptr));
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL: return call(static_cast<bool*>(nullptr));
    default: throw std::runtime_error("the model has values of a type that floats do not become");
  }
}

struct Input {
  std::string name;
  ONNXTensorElementDataType type;
  std::vector<int64_t> shape;
  std::vector<float> data;
};

struct Predictor {
  std::shared_ptr<Ort::Session> session;
  std::vector<Input> inputs;
  std::vector<std::string> output_names;
  std::vector<Ort::Value> outputs;
  std::vector<std::vector<mx_uint>> output_shapes;

  Input& input(const std::string& name) {
    for (auto& each : inputs)
      if (each.name == name) return each;
    throw std::runtime_error("the model has no input " + name);
  }

  Ort::Value& output(mx_uint index) {
    if (index >= outputs.size()) throw std::runtime_error("there is no such output");
    return outputs[index];
  }

  void forward() {
    Ort::AllocatorWithDefaultOptions allocator;
    std::vector<Ort::Value> values;
    std::vector<const char*> names, results;
    for (const auto& each : inputs) {
      auto value = Ort::Value::CreateTensor(allocator, each.shape.data(), each.shape.size(), each.type);
      with_type(each.type, [&](auto* type) {
        using T = std::remove_pointer_t<decltype(type)>;
        std::transform(each.data.begin(), each.data.end(), value.template GetTensorMutableData<T>(),
                       [](float x) { return static_cast<T>(x); });
      });
      values.push_back(std::move(value));
      names.push_back(each.name.c_str());
    }
    for (const auto& each : output_names) results.push_back(each.c_str());
    outputs = session->Run(Ort::RunOptions{}, names.data(), values.data(), values.size(),
                           results.data(), results.size());
    output_shapes.clear();
    for (const auto& each : outputs) {
      const auto shape = each.GetTensorTypeAndShapeInfo().GetShape();
      output_shapes.emplace_back(shape.begin(), shape.end());
    }
  }
};

// Takes the given shapes; inputs that are not named keep their own, free sizes being 1.
std::unique_ptr<Predictor> prepare(std::shared_ptr<Ort::Session> session, mx_uint count,
                                   const char** keys, const mx_uint* indptr, const mx_uint* data) {
  auto made = std::make_unique<Predictor>();
  made->session = std::move(session);
  Ort::AllocatorWithDefaultOptions allocator;
  for (size_t i = 0; i < made->session->GetInputCount(); ++i) {
    const auto kind = made->session->GetInputTypeInfo(i);  // it owns what `info` shows
    const auto info = kind.GetTensorTypeAndShapeInfo();
    auto shape = info.GetShape();
    std::replace(shape.begin(), shape.end(), int64_t(-1), int64_t(1));
    made->inputs.push_back({made->session->GetInputNameAllocated(i, allocator).get(),
                            info.GetElementType(), shape, {}});
  }
  for (mx_uint i = 0; i < count; ++i)
    made->input(keys[i]).shape.assign(data + indptr[i], data + indptr[i + 1]);
  for (auto& each : made->inputs) {
    size_t size = 1;
    for (int64_t n : each.shape) size *= size_t(n);
    each.data.assign(size, 0.0f);
  }
  for (size_t i = 0; i < made->session->GetOutputCount(); ++i)
    made->output_names.emplace_back(made->session->GetOutputNameAllocated(i, allocator).get());
  return made;
}

Predictor& predictor(PredictorHandle handle) { return *static_cast<Predictor*>(handle); }

}  // namespace

const char* MXGetLastError(void) { return last_error.c_str(); }

int MXPredCreate(const char* symbol_json_str, const void* param_bytes, int param_size, int dev_type,
                 int dev_id, mx_uint num_input_nodes, const char** input_keys,
                 const mx_uint* input_shape_indptr, const mx_uint* input_shape_data,
                 PredictorHandle* out) {
  return MXPredCreatePartialOut(symbol_json_str, param_bytes, param_size, dev_type, dev_id,
                                num_input_nodes, input_keys, input_shape_indptr, input_shape_data, 0,
                                nullptr, out);
}

int MXPredCreatePartialOut(const char*, const void* param_bytes, int param_size, int, int,
                           mx_uint num_input_nodes, const char** input_keys,
                           const mx_uint* input_shape_indptr, const mx_uint* input_shape_data,
                           mx_uint num_output_nodes, const char** output_keys, PredictorHandle* out) {
  return guard([&] {
    static Ort::Env env(ORT_LOGGING_LEVEL_WARNING, "mxnet_predict");
    auto session = std::make_shared<Ort::Session>(env, param_bytes, size_t(param_size),
                                                  Ort::SessionOptions());
    auto made = prepare(session, num_input_nodes, input_keys, input_shape_indptr, input_shape_data);
    if (num_output_nodes) {
      std::vector<std::string> chosen;
      for (mx_uint i = 0; i < num_output_nodes; ++i) {
        const std::string key = output_keys[i];
        const auto match = std::find_if(
            made->output_names.begin(), made->output_names.end(),
            [&](const std::string& name) { return name == key || name + "_output" == key; });
        if (match == made->output_names.end())
          throw std::runtime_error("the model has no output " + key);
        chosen.push_back(*match);
      }
      made->output_names = chosen;
    }
    made->forward();  // the shapes of outputs may be asked for before the first forward
    *out = made.release();
  });
}

int MXPredReshape(mx_uint num_input_nodes, const char** input_keys,
                  const mx_uint* input_shape_indptr, const mx_uint* input_shape_data,
                  PredictorHandle handle, PredictorHandle* out) {
  return guard([&] {
    auto made = prepare(predictor(handle).session, num_input_nodes, input_keys, input_shape_indptr,
                        input_shape_data);
    made->output_names = predictor(handle).output_names;
    made->forward();
    *out = made.release();
  });
}

int MXPredGetOutputShape(PredictorHandle handle, mx_uint index, mx_uint** shape_data,
                         mx_uint* shape_ndim) {
  return guard([&] {
    predictor(handle).output(index);
    auto& shape = predictor(handle).output_shapes[index];
    *shape_data = shape.data();
    *shape_ndim = mx_uint(shape.size());
  });
}

int MXPredSetInput(PredictorHandle handle, const char* key, const mx_float* data, mx_uint size) {
  return guard([&] {
    auto& input = predictor(handle).input(key);
    if (size != input.data.size())
      throw std::runtime_error(input.name + " needs " + std::to_string(input.data.size()) +
                               " numbers, got " + std::to_string(size));
    input.data.assign(data, data + size);
  });
}

int MXPredForward(PredictorHandle handle) {
  return guard([&] { predictor(handle).forward(); });
}

int MXPredPartialForward(PredictorHandle handle, int step, int* step_left) {
  *step_left = 0;
  return step == 0 ? MXPredForward(handle) : 0;
}

int MXPredGetOutput(PredictorHandle handle, mx_uint index, mx_float* data, mx_uint size) {
  return guard([&] {
    auto& output = predictor(handle).output(index);
    const auto info = output.GetTensorTypeAndShapeInfo();
    if (size != info.GetElementCount())
      throw std::runtime_error("the output has " + std::to_string(info.GetElementCount()) +
                               " numbers, not " + std::to_string(size));
    with_type(info.GetElementType(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      const T* values = output.template GetTensorData<T>();
      std::transform(values, values + size, data, [](T x) { return static_cast<float>(x); });
    });
  });
}

int MXPredFree(PredictorHandle handle) {
  delete static_cast<Predictor*>(handle);
  return 0;
}
