/** docs/batch.md: its scripts run as they are written, without the CI systems around them. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { bash, createPlace, type Service, serve } from './support/binary.js'
import { ONE_PIXEL_PNG } from './support/engines.js'

const TEXT = readFileSync(new URL('../docs/batch.md', import.meta.url), 'utf8')
const blockWith = (language: string, part: string): string =>
  [...TEXT.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))]
    .map(([, text = '']) => text)
    .find((text) => text.includes(part)) ?? ''

const MANIFEST = `defaults: { kind: image }
runs:
  - { name: fox, prompt: a fox, output: assets/fox.png }
`
const hasMake = spawnSync('make', ['--version']).status === 0

let service: Service
beforeAll(async () => {
  const engine = `image=echo ${ONE_PIXEL_PNG.toString('base64')} | base64 -d > "$RUSHES_OUTPUT_DIR/1.png"`
  service = await serve(createPlace(), ['--engine', engine])
})

/** Another person with the key of the service, and a manifest in their folder. */
function createUser() {
  const place = createPlace()
  writeFileSync(join(place.folder, 'shots.yaml'), MANIFEST)
  return place.with({ ...service.env, HOME: place.home, PATH: place.env.PATH })
}

describe('docs/batch.md', () => {
  it('shows steps for GitLab whose result passes a check without a key', async () => {
    const place = createUser()
    const keyless = place.with({ RUSHES_API_KEY: undefined, RUSHES_BASE_URL: undefined })
    const check = 'rushes batch shots.yaml --check'
    expect((await bash(keyless, check)).code).toBe(10)
    // The program is installed already.
    const npx = `npx() { "$@"; }\nnpm() { [ "$*" = ci ]; }\n`
    const git =
      'git init -q . && git config user.email a@b.c && git config user.name a && git() { [ "$1" = push ] || command git "$@"; }\n'
    const make = (parse(blockWith('yaml', 'image: node')).assets.script as string[]).join('\n')
    const made = await bash(place, `set -e\n${git}${npx}${make}\ncommand git show --stat --format=%s HEAD`)
    expect(made.code).toBe(0)
    expect(made.stdout).toMatch(/Create assets[\s\S]*assets\/fox\.png[\s\S]*shots\.lock\.json/)
    expect((await bash(keyless, check)).code).toBe(0)
  })

  it.skipIf(!hasMake)('shows a working rule for Make', async () => {
    const place = createUser()
    writeFileSync(join(place.folder, 'Makefile'), blockWith('make', ''))
    const { code, stdout } = await bash(place, 'make -s && make')
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^assets\/fox\.png\nmake: .*up to date\.\n$/),
    })
  })
})
