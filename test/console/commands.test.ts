/** The commands of a run's page, and the size of what a page loads. */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { commandsOf } from '../../src/console/commands.js'
import { readJson } from '../../src/protocol/json.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { readAssets } from '../../src/service/web/assets.js'
import { createByKey, createConsoleService, load, signInByLink } from '../support/console.js'

const HOSTILE = `it's "$HOME" \`id\` \\ JSON\nJSON\n\u202egnp`
const SENT = { sha256: 'a'.repeat(64), bytes: 3, content_type: 'image/png' }
const RUN = {
  kind: 'image' as const,
  model: 'rushes/preview-image',
  input: { prompt: HOSTILE, quality: 'high', image_urls: [SENT, 'https://example.com/a.png'] },
}

test('a shell reads the words of the command as they were sent', () => {
  const { prompt, ...input } = RUN.input
  const [rushes] = commandsOf(
    { ...RUN, input: { prompt: HOSTILE.replace(/[\n\u202e]/g, ''), ...input } },
    'http://127.0.0.1:7878',
    PREVIEW_DOCUMENTS.image,
  )
  const words = execFileSync('bash', ['-c', `rushes() { printf '%s\\0' "$@"; }\n${rushes?.code}`])
  expect(words.toString().split('\0')).toEqual([
    ...['run', 'image', prompt.replace(/[\n\u202e]/g, '')],
    ...['--input', '{"quality":"high","image_urls":["image-1.png","https://example.com/a.png"]}'],
    ...['--model', 'rushes/preview-image', '--base-url', 'http://127.0.0.1:7878', ''],
  ])
})

test('curl and Node.js send the input; an image that was sent as data is named for the user to add', () => {
  const input = { ...RUN.input, seed: 18446744073709551615n }
  const [, curl, node] = commandsOf({ ...RUN, input }, 'http://127.0.0.1:7878', undefined)
  const bodies = [
    execFileSync('bash', ['-c', `curl() { cat; }\n${curl?.code}`]),
    execFileSync(process.execPath, ['--input-type=module'], {
      input: `const fetch = (_, { body }) => process.exit(console.log(body))\n${node?.code}`,
    }),
  ]
  const sent = { ...input, image_urls: ['data: URL of image-1.png', 'https://example.com/a.png'] }
  for (const body of bodies) expect(readJson(body.toString())).toEqual({ model: RUN.model, input: sent })
  expect(curl?.code).toMatch(/^# image-1\.png: 3 bytes that were sent with the run/)
})

test('all that a page loads is under 35 KB compressed, with at most 900 declarations of CSS', async () => {
  const console = await readAssets(fileURLToPath(new URL('../../dist/console/', import.meta.url)))
  const service = await createConsoleService({ ...(console && { console }) })
  const { cookie } = await signInByLink(service)
  await createByKey(service, 24)
  const page = await load(service, '/runs', { cookie: `rushes_session=${cookie}` })
  const files = [...(console?.values() ?? [])]
  expect(files).toHaveLength(4)
  const bytes = files.reduce((sum, { gzip }) => sum + gzip.length, gzipSync(page.bytes).length)
  expect(bytes).toBeLessThan(35_000)
  const css = readFileSync(new URL('../../src/console/console.css', import.meta.url), 'utf8')
  expect(css.match(/^\s+[a-z-]+: /gm)?.length).toBeLessThanOrEqual(900)
})
