"""The fused recurrent operator."""

from tests.grammar.sampling import each, sample, uniform

TIME, BATCH, FEATURES, HIDDEN = 4, 3, 2, 3
GATES = {"rnn_relu": 1, "rnn_tanh": 1, "gru": 3, "lstm": 4}


def _weights(mode: str, layers: int, directions: int) -> object:
    gates, count = GATES[mode], 0
    for layer in range(layers):
        width = FEATURES if layer == 0 else HIDDEN * directions
        count += directions * gates * HIDDEN * (width + HIDDEN + 2)
    return uniform(-0.7, 0.7, count)


for _mode in GATES:
    for _layers, _both in ((1, False), (2, False), (1, True), (3, True)):
        _states = [uniform(-1, 1, _layers * (1 + _both), BATCH, HIDDEN)] * (1 + (_mode == "lstm"))
        sample(
            "RNN",
            uniform(-1, 1, TIME, BATCH, FEATURES),
            _weights(_mode, _layers, 1 + _both),
            *_states,
            mode=_mode,
            num_layers=_layers,
            bidirectional=_both,
            state_size=HIDDEN,
            state_outputs=each(False, True),
        )
