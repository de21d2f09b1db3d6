/** docs/batch.md: its manifest is valid, and its recipes run as they are written, without the CI systems around them. */
import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { entriesOf } from './batch/folder.js'
import { bash, createPlace, quoted, serve } from './support/binary.js'

const TEXT = readFileSync(fileURLToPath(new URL('../docs/batch.md', import.meta.url)), 'utf8')
const blocks = (language: string): readonly string[] =>
  [...TEXT.matchAll(new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, 'gs'))].map(([, text = '']) => text)

const MANIFEST = `defaults: { kind: image }
runs:
  - { name: fox, prompt: a fox, output: assets/fox.png }
`
const hasMake = spawnSync('make', ['--version']).status === 0

describe.concurrent('docs/batch.md', () => {
  const yamlWith = (part: string) => blocks('yaml').find((text) => text.includes(part)) ?? ''
  const [manifest = ''] = blocks('yaml')
  const github = yamlWith('jobs:\n')
  const gitlab = yamlWith('image: node')

  it('has a valid manifest', async () => {
    expect((await entriesOf(manifest)).map(({ name, output }) => [name, output])).toEqual([
      ['hero', 'assets/hero.mp4'],
      ['icon-fox', 'assets/icons/fox.png'],
      ['trees', 'trees.{ext}'],
      ['trees-2', 'trees-2.{ext}'],
      ['trees-3', 'trees-3.{ext}'],
    ])
  })

  it('has a matrix that is the same as the rows it names', async () => {
    expect(
      (await entriesOf(yamlWith('# icons.yaml'))).map(({ name, output, input }) => [name, output, input]),
    ).toEqual([
      ...['square', 'wide'].map((size) => [
        `icon-fox-${size}`,
        `icons/fox/${size}.png`,
        {
          prompt: 'a red fox with a white tail, flat icon',
          aspect_ratio: size === 'wide' ? '16:9' : '1:1',
          quality: 'high',
        },
      ]),
      [
        'icon-bear-square',
        'icons/bear/square.png',
        { prompt: 'a brown bear, flat icon', aspect_ratio: '1:1', quality: 'high' },
      ],
    ])
  })

  it('has a script that creates everything', async () => {
    const place = await serve(createPlace())
    writeFileSync(join(place.folder, 'shots.yaml'), MANIFEST)
    const script = blocks('bash').find((text) => text.startsWith('#!')) ?? ''
    expect(await bash(place, script)).toMatchObject({
      code: 0,
      stdout: 'assets/fox.png\nall assets are up to date\n',
    })
  })

  it('has working steps for GitHub and GitLab', async () => {
    const place = await serve(createPlace())
    writeFileSync(join(place.folder, 'shots.yaml'), MANIFEST)
    const steps = parse(github).jobs.assets.steps as { run?: string }[]
    const check = steps.flatMap(({ run }) => (run === undefined ? [] : [run])).join('\n')
    const make = (parse(gitlab).assets.script as string[]).join('\n')
    const npx = `npx() { "$@"; }\n`
    expect(
      (await bash(place.with({ RUSHES_API_KEY: undefined, RUSHES_BASE_URL: undefined }), npx + check)).code,
    ).toBe(10)
    const git =
      'git init -q . && git config user.email a@b.c && git config user.name a && git() { [ "$1" = push ] || command git "$@"; }\n'
    const made = await bash(place, `set -e\n${git}${npx}${make}\ncommand git show --stat --format=%s HEAD`)
    expect(made.code).toBe(0)
    expect(made.stdout).toMatch(/Create assets[\s\S]*assets\/fox\.png[\s\S]*shots\.lock\.json/)
    expect(
      (await bash(place.with({ RUSHES_API_KEY: undefined, RUSHES_BASE_URL: undefined }), npx + check)).code,
    ).toBe(0)
  })

  it.skipIf(!hasMake)('has a rule for Make', async () => {
    const place = await serve(createPlace())
    writeFileSync(join(place.folder, 'shots.yaml'), MANIFEST)
    writeFileSync(join(place.folder, 'Makefile'), blocks('make')[0] ?? '')
    const { code, stdout } = await bash(place, `make -s && make && printf %s ${quoted('')}`)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^assets\/fox\.png\nmake: .*up to date\.\n$/),
    })
  })
})
