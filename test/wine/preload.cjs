// Wine's own faults. keep-alive.cjs shows each of them without rushes.
const net = require('node:net')

// Wine 8 has no TCP_KEEPALIVE: a connection that asks for it fails with UNKNOWN.
net.Socket.prototype.setKeepAlive = function () {
  return this
}
