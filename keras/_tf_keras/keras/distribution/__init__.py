# Written by shell/api_gen.sh.
from keras.src.distribution.description import describe as describe
