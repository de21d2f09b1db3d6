// Prints the error of a connection with keep-alive, or `connected`. Plain Node.js on Windows prints `connected`.
const net = require('node:net')

const server = net.createServer().listen(0, '127.0.0.1', () => {
  const socket = net.connect(server.address().port, '127.0.0.1')
  socket.setKeepAlive(true, 60_000)
  const end = (text) => {
    process.stdout.write(text)
    process.exit()
  }
  socket.on('connect', () => end('connected'))
  socket.on('error', ({ code }) => end(code))
})
