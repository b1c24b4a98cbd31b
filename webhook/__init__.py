"""The admission server: a review goes in, an answer comes out of local memory."""
