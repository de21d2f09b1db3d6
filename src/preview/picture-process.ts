/** Entry point of the process that draws one picture. Built as `dist/picture.cjs`. Its argument is a request as JSON. */
import { describeReason } from '../host/system-error.js'
import { drawPicture } from './terminal-picture.js'

drawPicture(JSON.parse(process.argv[2] ?? ''), process.env.PATH).then(
  (codes) => process.stdout.write(codes),
  (error) => {
    process.stderr.write(describeReason(error))
    process.exitCode = 1
  },
)
