/** The commands of a run, carried out by the shell and by Node.js: what arrives is what the run had. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { commandsOf as commandsOfModel } from '../../src/console/runs/run-again.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { readCreate } from '../../src/service/rules/create-request.js'
import { anyCharacter } from '../support/any-character.js'
import { FLUX } from './models.js'

const BASE = 'http://127.0.0.1:8787'
const SENT = { sha256: 'a'.repeat(64), bytes: 3, content_type: 'image/png' }

const HOSTILE: readonly string[] = [
  'a fox',
  "it's",
  '"quoted" $HOME `id` $(id) \\ !! # ;&|<>*?~',
  '-n 3',
  '-',
  'line one\nline two',
  'JSON\nJSON\n',
  '</script><img src=x onerror=alert(1)>',
  '\u202egnp.exe\u2066',
  '\u001b]0;title\u0007',
  '狐 🦊 ثعلب',
  '\u2028\u2029',
  '@file',
  `\${process.env.HOME}`,
  "';alert(1)//",
]

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rushes-commands-'))
  writeFileSync(join(folder, 'image-1.png'), 'one')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ENV = { PATH: process.env.PATH, HOME: '/nowhere', RUSHES_API_KEY: 'secret' }

const bash = (script: string): string =>
  execFileSync('bash', ['-c', script], { cwd: folder, env: ENV, encoding: 'utf8' })

/** The arguments of `rushes` in each command. */
const wordsOf = (...commands: readonly string[]): readonly (readonly string[])[] =>
  bash(`rushes() { printf '%s\\0' "$@"; printf '\\1'; }\n${commands.join('\n')}`)
    .split('\u0001')
    .slice(0, -1)
    .map((words) => words.split('\0').slice(0, -1))

/** The arguments of curl in each command, and what it is given. */
const curlOf = (...commands: readonly string[]) =>
  bash(`curl() { printf '%s\\0' "$@"; printf '\\1'; command cat; printf '\\2'; }\n${commands.join('\n')}`)
    .split('\u0002')
    .slice(0, -1)
    .map((call) => {
      const [args = '', body = ''] = call.split('\u0001')
      return { args: args.split('\0').slice(0, -1), body: JSON.parse(body) }
    })

/** What the module sends, with a service that has finished the run at once. */
function nodeOf(module: string): { readonly sent: { readonly body: string }; readonly printed: string } {
  const stub = [
    'let sent',
    "globalThis.fetch = async (url, init = {}) => { sent ??= { url, ...init }; const run = { id: 'run_1', status: 'succeeded', output: { urls: ['u'] } }; return { ok: true, status: init.method === 'POST' ? 201 : 200, json: async () => run } }",
    "process.on('exit', () => process.stdout.write('\\n' + JSON.stringify(sent)))",
  ].join('\n')
  const file = join(folder, 'run.mjs')
  writeFileSync(file, `${module}\n`)
  writeFileSync(join(folder, 'stub.mjs'), stub)
  const output = execFileSync(process.execPath, ['--import', './stub.mjs', 'run.mjs'], {
    cwd: folder,
    env: ENV,
    encoding: 'utf8',
  })
  const lines = output.trimEnd().split('\n')
  return { sent: JSON.parse(lines.at(-1) ?? ''), printed: lines.slice(0, -1).join('\n').trim() }
}

const runOf = (input: Readonly<Record<string, unknown>>, kind: 'image' | 'video' = 'image') => ({
  kind,
  model: `rushes/preview-${kind}`,
  input,
})

const commandsOf = (run: ReturnType<typeof runOf>, base: string) =>
  commandsOfModel(run, base, PREVIEW_DOCUMENTS[run.kind])

describe('the command rushes', () => {
  it('names the kind, the flags, the model and the service', () => {
    const { rushes } = commandsOf(
      runOf({
        prompt: 'a fox',
        aspect_ratio: '16:9',
        quality: 'high',
        image_urls: ['https://e.test/a?b=1&c'],
      }),
      `${BASE}/`,
    )
    expect(rushes).toBe(
      [
        "rushes run image 'a fox' --aspect-ratio 16:9 --quality high",
        "-i 'https://e.test/a?b=1&c'",
        '--model rushes/preview-image',
        `--base-url ${BASE}`,
      ].join(' \\\n  '),
    )
  })

  it('uses a file name for an embedded image, and says so', () => {
    const { rushes } = commandsOf(runOf({ prompt: 'a fox', image_urls: [SENT, 'https://e.test/a'] }), BASE)
    expect(rushes.split('\n')[0]).toBe(
      '# image-1.png: an image of 3 bytes (image/png) that was sent with the run. Replace it with your own file.',
    )
    expect(wordsOf(rushes)).toEqual([
      [
        ...['run', 'image', 'a fox', '-i', 'image-1.png', '-i', 'https://e.test/a'],
        ...['--model', 'rushes/preview-image', '--base-url', BASE],
      ],
    ])
  })

  it('uses the flags of the model, or --input without its document', () => {
    const run = {
      ...({ kind: 'image', model: FLUX.name } as const),
      input: { prompt: 'a fox', steps: 30, tiling: false, control: [1], image_urls: ['https://e.test/a'] },
    }
    const tail = ['--model', 'acme/flux', '--base-url', BASE]
    const [known, unknown] = wordsOf(
      commandsOfModel(run, BASE, FLUX).rushes,
      commandsOfModel(run, BASE, undefined).rushes,
    )
    expect(known).toEqual([
      ...['run', 'image', 'a fox', '--steps', '30', '--no-tiling', '-i', 'https://e.test/a'],
      ...['--input', '{"control":[1]}', ...tail],
    ])
    expect(unknown).toEqual([
      ...['run', 'image', '-i', 'https://e.test/a'],
      ...['--input', '{"prompt":"a fox","steps":30,"tiling":false,"control":[1]}', ...tail],
    ])
  })

  it('passes values that no flag can express as --input', () => {
    const input = { prompt: 'a\nb', seed: 7, image_urls: ['run:1'] }
    const [words = []] = wordsOf(commandsOf(runOf(input), BASE).rushes)
    expect(words.slice(0, 3)).toEqual(['run', 'image', '--input'])
    expect(JSON.parse(words[3] ?? '')).toEqual(input)
  })

  it('passes every prompt unchanged', () => {
    const calls = wordsOf(...HOSTILE.map((prompt) => commandsOf(runOf({ prompt }), BASE).rushes))
    for (const [index, prompt] of HOSTILE.entries()) {
      const words = calls[index] ?? []
      const at = words.indexOf('--input')
      if (at >= 0) expect(JSON.parse(words[at + 1] ?? '')).toEqual({ prompt })
      else expect(words).toContain(prompt)
    }
  })
})

describe('the command curl', () => {
  it('sends the key, the type and the body', () => {
    const run = runOf({ prompt: 'a fox' })
    const args = [
      ...['-sS', `${BASE}/api/v1/runs`, '-H', 'Authorization: Bearer secret'],
      ...['-H', 'Content-Type: application/json', '--data-binary', '@-'],
    ]
    const body = { model: run.model, input: run.input }
    expect(curlOf(commandsOf(run, BASE).curl)).toEqual([{ args, body }])
  })

  it('uses a file name for an embedded image', () => {
    const { curl } = commandsOf(runOf({ prompt: 'a', image_urls: [SENT, 'https://e.test/a'] }), BASE)
    expect(curl).toMatch(/^# image-1.png: an image of 3 bytes /)
    const [{ body } = { body: undefined }] = curlOf(curl)
    expect(body.input.image_urls).toEqual(['data: URL of image-1.png', 'https://e.test/a'])
    // Nothing is paid before the file is there.
    const create = () => readCreate(Buffer.from(JSON.stringify(body)), [PREVIEW_DOCUMENTS.image])
    expect(create).toThrow('data: URL without a comma')
  })

  it.each([
    ['no image', []],
    ['an image', [SENT]],
  ])('passes every prompt unchanged with %s', (_, image_urls) => {
    const calls = curlOf(...HOSTILE.map((prompt) => commandsOf(runOf({ prompt, image_urls }), BASE).curl))
    expect(calls.map(({ body }) => body.input.prompt)).toEqual(HOSTILE)
  })

  it('sends a prompt that exceeds the maximum length of an argument', () => {
    const prompt = "狐'".repeat(50_000)
    const { curl } = commandsOf(runOf({ prompt }), BASE)
    writeFileSync(join(folder, 'long.sh'), `curl() { command cat; }\n${curl}`)
    const output = execFileSync('bash', ['long.sh'], { cwd: folder, env: ENV, encoding: 'utf8' })
    expect(JSON.parse(output).input.prompt).toBe(prompt)
  })
})

describe('the program for Node.js', () => {
  it('creates the run, waits and prints its outputs', () => {
    const { sent, printed } = nodeOf(commandsOf(runOf({ prompt: 'a fox' }), BASE).node)
    expect(sent).toMatchObject({
      url: `${BASE}/api/v1/runs`,
      method: 'POST',
      headers: { authorization: 'Bearer secret' },
    })
    expect(printed).toBe("[ 'u' ]")
  })

  it('reads the images that were sent from files', () => {
    const { sent } = nodeOf(
      commandsOf(runOf({ prompt: 'a', image_urls: [SENT, 'https://e.test/a'] }), BASE).node,
    )
    expect(JSON.parse(sent.body).input.image_urls).toEqual(['data:image/png;base64,b25l', 'https://e.test/a'])
  })

  it('passes every prompt unchanged', () => {
    const { sent } = nodeOf(commandsOf(runOf({ prompt: 'a', all: HOSTILE }), BASE).node)
    expect(JSON.parse(sent.body).input.all).toEqual(HOSTILE)
  })
})

describe('the text of a command', () => {
  it('contains no control characters and no overrides, for any run', () => {
    const text = fc.string({ unit: anyCharacter })
    fc.assert(
      fc.property(text, text, text, (prompt, name, type) => {
        const run = runOf({ prompt, [name]: prompt, image_urls: [{ ...SENT, content_type: type }, prompt] })
        for (const command of Object.values(commandsOf({ ...run, model: `acme/${name}` }, BASE)))
          expect(command).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
      }),
    )
  })
})
