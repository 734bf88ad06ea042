"""Files of samples: RecordIO, MNIST, CSV, LibSVM."""
