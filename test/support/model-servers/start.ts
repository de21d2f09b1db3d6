/**
 * Starts a server of models for trials by hand, on a port of this machine:
 * `npx rolldown test/support/model-servers/start.ts --format cjs --platform node --external vitest -d /tmp/server`, then
 * `node /tmp/server/start.js sdcpp 1234`.
 */
import { createImagesServer, IMAGES_DIALECTS, type ImagesDialect } from './images.js'
import { createSdcppServer } from './sdcpp.js'

const [dialect = '', port = '0'] = process.argv.slice(2)
if (Object.hasOwn(IMAGES_DIALECTS, dialect)) {
  const started =
    dialect === 'sdcpp'
      ? createSdcppServer({ port: Number(port), modes: ['img_gen', 'vid_gen'] })
      : createImagesServer(dialect as ImagesDialect, Number(port))
  started.then((server) => process.stdout.write(`${dialect} at ${server.url}\n`))
} else {
  process.stderr.write(`usage: server <${Object.keys(IMAGES_DIALECTS).join('|')}> [port]\n`)
  process.exitCode = 2
}
