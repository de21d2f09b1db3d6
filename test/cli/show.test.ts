/** `rushes show`: what the journal knows of one run, and the command that repeats it. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Journal } from '../../src/journal/index.js'
import { createCliService, LOOPBACK_URL, runCli, SET, scripted } from '../support/cli.js'
import { createInstantEngine, ONE_PIXEL_PNG } from '../support/engines.js'
import { addRow, finishedState, rowsOf } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

/** The words of a line, as a shell makes them. */
const wordsIn = (line: string): readonly string[] =>
  execFileSync('sh', ['-c', `printf '%s\\0' ${line}`], { encoding: 'utf8' })
    .split('\0')
    .slice(0, -1)

describe('show', () => {
  it('prints everything that is known of a run, tab-separated in a pipe', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    await service.run(['run', 'image', 'a\nfox', '--quality', 'high', '-o', path])
    const id = rowsOf(service.home)[0]?.id ?? ''
    const { code, stdout, stderr } = await service.run(['show', id])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'))
    expect(rows).toEqual([
      ['run', id],
      ['status', 'succeeded'],
      ['where', LOOPBACK_URL],
      ['profile', 'default'],
      ['kind', 'image'],
      ['model', 'rushes/preview-image'],
      ['prompt', 'a fox'],
      ['quality', 'high'],
      ['created', expect.stringMatching(/Z$/)],
      ['finished', expect.stringMatching(/Z$/)],
      ['elapsed', expect.stringMatching(/^\d\.\d s$/)],
      ['file', `${path} (${ONE_PIXEL_PNG.byteLength} B, image/png, 1x1)`],
      ['marks', 'no marks of synthetic media found'],
      ['url', expect.stringMatching(/^http/)],
    ])
    rmSync(path)
    expect((await service.run(['show', id])).stdout).toContain(`file\t${path} (moved, changed or deleted)\n`)
    const table = await service.run(['show', id], { tty: { stdout: true } })
    expect(table.stdout).toMatch(/^run {7}run_\w+$/m)
    expect(table.stdout).toMatch(/^created {3}\S+Z \(.*\)$/m)
  })

  it('takes a key, and shows the response that did not show the outcome', async () => {
    const home = temporaryFolder()
    const { fetch } = scripted({ status: 500, body: 'oh no' })
    await runCli(['run', 'image', 'a fox'], { fetch, home, env: SET })
    const key = rowsOf(home)[0]?.key ?? ''
    for (const name of [key, key.slice(1)]) {
      const { code, stdout } = await runCli(['show', name], { home })
      expect(code).toBe(0)
      expect(stdout).toContain(`run\t${key}\nstatus\tunconfirmed\n`)
      expect(stdout).toContain('response\t500 oh no\n')
    }
    const again = await runCli(['show', key, '--again'], { home, env: SET })
    expect(again.stdout).toBe("rushes run image 'a fox' --model acme/still-1\n")
    expect(again.stderr).toContain('the run may exist')
  })

  it('finds a run at any address, and says where it is; one that is not in the journal is exit 2', async () => {
    const home = temporaryFolder()
    addRow(home, { id: 'r1', address: 'https://a.example' })
    addRow(home, { id: 'r2', address: 'local' })
    expect((await runCli(['show', 'r1'], { home })).stdout).toContain('where\thttps://a.example\n')
    expect((await runCli(['show', 'r2'], { home, env: SET })).stdout).toContain('where\tlocal\n')
    expect((await runCli(['show', 'r1', '--local'], { home })).code).toBe(2)
    const none = await runCli(['show', 'r9'], { home })
    expect(none).toMatchObject({ code: 2, stdout: '' })
    expect(none.stderr).toContain('error: r9 is not in the journal.')
  })
})

describe('--again', () => {
  it('keeps the labels and the output of the run', async () => {
    const [home, folder] = [temporaryFolder(), temporaryFolder()]
    const file = (path: string, url: string) => ({
      path,
      bytes: 1,
      sha256: path,
      url,
      content_type: 'image/png',
    })
    const line = async (id: string, labels: readonly string[], ...paths: readonly string[]) => {
      addRow(home, { id, labels }, (journal) => {
        journal.recordStatus(LOOPBACK_URL, { state: finishedState(id, ['a', 'b']) })
        journal.recordFiles(
          LOOPBACK_URL,
          id,
          paths.map((path, at) => file(path, ['a', 'b'][at] ?? '')),
        )
      })
      const { stdout } = await runCli(['show', id, '--again'], { home, env: SET })
      return stdout.trimEnd().replace("rushes run image 'a fox' --model acme/still-1 ", '')
    }
    expect(await line('r1', ['spring', 'two words'], join(folder, 'fox.png'))).toBe(
      `--label spring --label 'two words' -o ${folder}/fox.png`,
    )
    expect(await line('r2', [], resolve('r2.png'))).toBe('-d')
    expect(await line('r3', [], join(folder, 'r3-1.png'), join(folder, 'r3-2.png'))).toBe(`-o ${folder}/`)
    expect(await line('r4', [], resolve('art/fox.png'))).toBe('-o art/fox.png')
  })

  it('names a file that does not exist, and says how to replace the one that does', async () => {
    const service = await createCliService({ engine: createInstantEngine() })
    const cwd = temporaryFolder()
    const path = join(cwd, 'fox.png')
    const repeat = async () => {
      const { stdout, stderr } = await service.run(['show', '--last', '--again'])
      return { words: wordsIn(stdout.trimEnd()).slice(1), stderr }
    }
    expect((await service.run(['run', 'image', 'a fox', '-o', path])).code).toBe(0)
    for (const number of [2, 3]) {
      const { words, stderr } = await repeat()
      const free = join(cwd, `fox-${number}.png`)
      const before = number === 2 ? path : join(cwd, 'fox-2.png')
      expect(stderr).toBe(
        `${before} exists, so the command writes ${free}. To replace it, use -o ${before} --overwrite.\n`,
      )
      expect(await service.run(words)).toMatchObject({ code: 0, stdout: `${free}\n` })
    }
    rmSync(path)
    rmSync(join(cwd, 'fox-3.png'))
    expect(await repeat()).toMatchObject({
      words: expect.arrayContaining([join(cwd, 'fox-3.png')]),
      stderr: '',
    })
  })

  const again = async (home: string, id = 'r1', flags: readonly string[] = []) => {
    const { code, stdout, stderr } = await runCli(['show', id, '--again', ...flags], { home, env: SET })
    return { code, line: stdout.replace(/\n$/, ''), stderr }
  }

  /** The request body of a command line. */
  const bodyOf = async (line: string) => {
    const [program, ...words] = wordsIn(line)
    expect(program).toBe('rushes')
    const dry = await runCli([...words, '--dry-run', '--json'], { env: SET })
    expect(dry.stderr.replace(/^\{"warning".*\n/gm, '')).toBe('')
    const { model, input } = JSON.parse(dry.stdout)
    return { model, input }
  }

  it.each<[string, Record<string, unknown>]>([
    ['a plain prompt', { prompt: 'a fox' }],
    ['one word', { prompt: 'fox' }],
    ['quotes of both kinds', { prompt: `it's "red" \\ \`ls\` $HOME $(ls) !x; * ? ~ # &` }],
    ['several lines', { prompt: 'one\ntwo\tthree\r\n' }],
    ['control characters', { prompt: 'a \u001b[31m fox \u0007\u009b' }],
    ['a dash first', { prompt: '--local' }],
    ['a dash alone', { prompt: '-' }],
    ['blanks around', { prompt: '  a fox ' }],
    ['another script', { prompt: '狐 🦊' }],
    ['parameters', { prompt: 'a fox', aspect_ratio: '16:9', quality: 'high' }],
    ['unknown fields', { prompt: 'a fox', seed: 7, style: { name: "it's", weights: [1, 2] } }],
    ['a known parameter with an unknown value', { prompt: 'a fox', quality: null }],
    ['URLs', { prompt: 'a fox', image_urls: ['https://a.example/1.png?x=1&y=2', 'http://b.example/2.png'] }],
  ])('creates the same request: %s', async (_, input) => {
    const home = temporaryFolder()
    addRow(home, { id: 'r1', input })
    const { code, line } = await again(home)
    expect(code).toBe(0)
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
    if (input.quality === null) return
    expect(await bodyOf(line)).toEqual({ model: 'acme/still-1', input })
  })

  it('has plain flags where it can, and --input elsewhere', async () => {
    const home = temporaryFolder()
    addRow(home, {
      id: 'r1',
      kind: 'video',
      model: 'acme/cinema-1',
      input: { prompt: 'a boat', duration: '5' },
    })
    expect((await again(home)).line).toBe("rushes run video 'a boat' --duration 5 --model acme/cinema-1")
    addRow(home, { id: 'r2', kind: undefined, model: 'acme/song-1', input: { text: 'la' } } as never)
    expect((await again(home, 'r2')).line).toBe(`rushes run model acme/song-1 --input '{"text":"la"}'`)
  })

  it('names the place of a run that was created elsewhere', async () => {
    const home = temporaryFolder()
    addRow(home, { id: 'r1', address: 'https://a.example' })
    expect((await again(home)).line).toBe(
      "rushes run image 'a fox' --model acme/still-1 --base-url https://a.example",
    )
    addRow(home, { id: 'r2', address: 'local', model: 'rushes/preview-image' })
    for (const flags of [[], ['--local']])
      expect((await again(home, 'r2', flags)).line).toBe("rushes run image 'a fox' --local")
    // The flags of this command are not those of the next one.
    expect((await again(home, 'r1', ['--base-url', 'https://a.example'])).line).toBe(
      "rushes run image 'a fox' --model acme/still-1 --base-url https://a.example",
    )
  })

  it('names the service of a run whose profile has another one', async () => {
    const home = temporaryFolder()
    const profiles = { default: { baseUrl: 'https://b.example' }, work: { baseUrl: 'https://a.example' } }
    mkdirSync(join(home, 'config'))
    writeFileSync(join(home, 'config', 'config.json'), JSON.stringify({ profiles }))
    addRow(home, { id: 'r1', address: 'https://b.example', profile: 'work' })
    for (const flags of [[], ['--base-url', 'https://b.example']])
      expect((await runCli(['show', 'r1', '--again', ...flags], { home })).stdout).toBe(
        "rushes run image 'a fox' --model acme/still-1 --profile work --base-url https://b.example\n",
      )
  })

  it('takes images from earlier runs and from files that are still there', async () => {
    const home = temporaryFolder()
    const path = join(home, "it's.png")
    writeFileSync(path, ONE_PIXEL_PNG)
    const stored = { sha256: 'a'.repeat(64), bytes: ONE_PIXEL_PNG.byteLength, content_type: 'image/png' }
    const state = finishedState('r0', [
      'https://cdn.example/0.png?signature=old',
      'https://cdn.example/1.png?signature=old',
    ])
    addRow(home, { id: 'r0' }, (journal) => {
      journal.recordStatus(LOOPBACK_URL, { state })
      journal.recordFiles(LOOPBACK_URL, 'r0', [{ path, url: '', ...stored }])
    })
    const image_urls = [stored, 'https://cdn.example/1.png?signature=new', 'https://cdn.example/0.png']
    addRow(home, { id: 'r1', input: { prompt: 'a fox', image_urls } })
    const { line } = await again(home)
    expect(wordsIn(line)).toEqual([
      ...['rushes', 'run', 'image', 'a fox', '-i', path, '-i', 'run:r0#2', '-i', 'run:r0'],
      ...['--model', 'acme/still-1'],
    ])
    rmSync(path)
    const lost = await again(home)
    expect(lost).toMatchObject({ code: 2, line: '' })
    expect(lost.stderr).toContain('r1 cannot be repeated by one command.')
    expect(lost.stderr).toContain(`sha256 ${stored.sha256}`)
    expect(lost.stderr).toMatch(
      /Add each image with -i <path> to `rushes run image 'a fox' -i 'run:r0#2' -i run:r0 /,
    )
    const object = JSON.parse((await runCli(['show', 'r1', '--json'], { home, env: SET })).stdout)
    expect(object).toMatchObject({ id: 'r1', again: null })
  })

  it.each<[string, readonly string[], string, string | undefined]>([
    [
      'another query',
      ['https://a.example/file?id=r1', 'https://a.example/file?id=r0'],
      'file?id=r0',
      'run:r0#2',
    ],
    ['the path of another host', ['https://b.example/0.png'], '0.png', undefined],
    ['another signature', ['https://a.example/0.png?X-Amz-Date=1&X-Amz-Signature=a'], '0.png', 'run:r0'],
  ])('names the earlier output that an image was, and no other: %s', async (_, urls, image, source) => {
    const home = temporaryFolder()
    const finish = (id: string, links: readonly string[]) => (journal: Journal) =>
      journal.recordStatus(LOOPBACK_URL, { state: finishedState(id, links) })
    addRow(home, { id: 'r0' }, finish('r0', urls))
    const url = `https://a.example/${image}`
    addRow(home, { id: 'r1', input: { prompt: 'a fox', image_urls: [url] } }, finish('r1', [`${url}&new`]))
    // Its own output and that of a later run are not what it was made from.
    addRow(home, { id: 'r2' }, finish('r2', [url]))
    const { line } = await again(home)
    expect(wordsIn(line).slice(4, 6)).toEqual(['-i', source ?? url])
  })
})
