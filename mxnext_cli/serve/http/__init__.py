"""Connections and requests, whatever they ask for.

`door` accepts connections, `protocol` bounds them, `guard` says who may ask, `app` finds the
handler of a request, and `responses` are answers.
"""
