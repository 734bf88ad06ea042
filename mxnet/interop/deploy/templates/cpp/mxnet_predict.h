/* MXNet's C predict API, run by ONNX Runtime: programs written for c_predict_api.h compile again.
 *
 * Give the bytes of model.onnx where the bytes of the .params file were; the text of the symbol is
 * not read. Devices are ignored: ONNX Runtime's CPU provider runs the model. A function returns 0,
 * or -1 and a message from MXGetLastError. Numbers are converted from and to float.
 */
#ifndef MXNET_PREDICT_H_
#define MXNET_PREDICT_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint32_t mx_uint;
typedef float mx_float;
typedef void* PredictorHandle;

/* The message of this thread's last failure. */
const char* MXGetLastError(void);

/* Make a predictor; shapes of inputs as in MXNet: shape i is data[indptr[i]] .. data[indptr[i + 1]]. */
int MXPredCreate(const char* symbol_json_str, const void* param_bytes, int param_size, int dev_type,
                 int dev_id, mx_uint num_input_nodes, const char** input_keys,
                 const mx_uint* input_shape_indptr, const mx_uint* input_shape_data,
                 PredictorHandle* out);

/* The same, with some of the model's outputs; "fc" and "fc_output" both mean the output fc. */
int MXPredCreatePartialOut(const char* symbol_json_str, const void* param_bytes, int param_size,
                           int dev_type, int dev_id, mx_uint num_input_nodes,
                           const char** input_keys, const mx_uint* input_shape_indptr,
                           const mx_uint* input_shape_data, mx_uint num_output_nodes,
                           const char** output_keys, PredictorHandle* out);

/* Make a predictor for other shapes; the model must leave them free. The old one stays. */
int MXPredReshape(mx_uint num_input_nodes, const char** input_keys,
                  const mx_uint* input_shape_indptr, const mx_uint* input_shape_data,
                  PredictorHandle handle, PredictorHandle* out);

int MXPredGetOutputShape(PredictorHandle handle, mx_uint index, mx_uint** shape_data,
                         mx_uint* shape_ndim);
int MXPredSetInput(PredictorHandle handle, const char* key, const mx_float* data, mx_uint size);
int MXPredForward(PredictorHandle handle);
/* Runs the whole model in its first step. */
int MXPredPartialForward(PredictorHandle handle, int step, int* step_left);
int MXPredGetOutput(PredictorHandle handle, mx_uint index, mx_float* data, mx_uint size);
int MXPredFree(PredictorHandle handle);

#ifdef __cplusplus
}
#endif
#endif
