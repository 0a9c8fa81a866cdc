from keras.src.distribution.description import describe
