/** Entry point of the process that draws one picture. Built as `dist/picture.cjs`. Its argument is a request as JSON. */
import { describeReason } from '../host/system-error.js'
import { drawPicture } from './terminal-picture.js'

const ending = new AbortController()
// Otherwise ffmpeg would live on.
process.once('SIGTERM', () => {
  ending.abort()
  process.kill(process.pid, 'SIGTERM')
})

drawPicture(JSON.parse(process.argv[2] ?? ''), process.env.PATH, ending.signal).then(
  (codes) => process.stdout.write(codes),
  (error) => {
    process.stderr.write(describeReason(error))
    process.exitCode = 1
  },
)
