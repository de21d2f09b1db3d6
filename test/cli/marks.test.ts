/** Marks of synthetic media: each output of a command that names a file says what the file says of its origin. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCliService, type RunOptions, runCli } from '../support/cli.js'
import { createInstantEngine } from '../support/engines.js'
import { withJournal } from '../support/journal.js'
import { actionOf, manifestOf, markedPng, xmpWith } from '../support/marked-files.js'
import { openMcp } from '../support/mcp.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const TERM = 'trainedAlgorithmicMedia'
const BYTES = markedPng({ manifest: manifestOf(actionOf(TERM)), xmp: xmpWith(TERM) })
const MARKS = { content_credentials: true, digital_source_type: TERM }
const TEXT = `Content Credentials, ${TERM}`

const engine = () => createInstantEngine({ bytes: BYTES })

describe('marks of a file', () => {
  it('appear in the JSON of run, list and show, the sidecar, the text of show, and the page', async () => {
    const service = await createCliService({ engine: engine() })
    const folder = temporaryFolder()
    const path = join(folder, 'fox.png')
    const { stdout } = await service.run(['run', 'image', 'a fox', '-o', path, '--sidecar', '--json'])
    const { id, files } = JSON.parse(stdout)
    expect(files).toMatchObject([{ path, ...MARKS }])
    expect(readFileSync(path).equals(BYTES)).toBe(true)
    expect(JSON.parse(readFileSync(`${path}.json`, 'utf8'))).toMatchObject(MARKS)
    for (const words of [['list'], ['show', id]])
      expect(JSON.parse((await service.run([...words, '--json'])).stdout).files).toMatchObject([MARKS])
    expect((await service.run(['show', id])).stdout).toContain(`\nmarks\t${TEXT} (not verified)\n`)
    const page = join(folder, 'gallery.html')
    await service.run(['gallery', '-o', page])
    expect(readFileSync(page, 'utf8')).toContain(`"marks":"${TEXT}"`)
    // A later command finds the file on the disk.
    const again = await service.run(['download', id, '-o', path, '--json'])
    expect(JSON.parse(again.stdout).files).toMatchObject([{ path, ...MARKS }])
  })

  it('read as null from the journal of a version that did not record them', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'fox.png')
    await service.run(['run', 'image', 'a fox', '-o', path])
    withJournal(service.home, (journal) => {
      const [run] = journal.list({})
      const file = { path, bytes: 1, sha256: 'a'.repeat(64), url: '', content_type: 'image/png' }
      journal.recordFiles(run?.address ?? '', run?.id ?? '', [file])
    })
    const { stdout } = await service.run(['list', '--json'])
    expect(JSON.parse(stdout).files).toMatchObject([{ content_credentials: null, digital_source_type: null }])
    expect((await service.run(['show', '--last'])).stdout).not.toContain('marks')
  })

  it('appear in the lines of a batch', async () => {
    const service = await createCliService({ engine: engine() })
    const manifest = join(temporaryFolder(), 'shots.yaml')
    writeFileSync(manifest, 'runs:\n  - { name: fox, kind: image, prompt: a fox }\n')
    const { stdout } = await service.run(['batch', manifest, '--json'])
    expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ result: 'created', ...MARKS })
  })

  it('appear in the result of a tool of rushes mcp', async () => {
    const mcp = await openMcp(await createCliService({ engine: engine() }))
    const { structured, text } = await mcp.call('create_image', { prompt: 'a fox' })
    expect(structured.runs[0].files).toMatchObject([MARKS])
    expect(text).toContain(`(image/png, ${BYTES.length} B, ${TEXT})`)
  })

  it('appear in the status of a local run, whose files are in the data folder', async () => {
    const home = temporaryFolder()
    const local = (...words: string[]) => runCli([...words, '--local', '--json'], { engine: engine(), home })
    const path = join(temporaryFolder(), 'fox.png')
    const { id, files } = JSON.parse((await local('run', 'image', 'a fox', '-o', path)).stdout)
    expect(files).toMatchObject([MARKS])
    writeFileSync(path, 'changed')
    expect(JSON.parse((await local('status', id)).stdout).files).toMatchObject([MARKS])
  })

  it('appear in the gallery, with the picture, for a local run that was not downloaded', async () => {
    const home = temporaryFolder()
    const run = (words: readonly string[], options: RunOptions = {}) =>
      runCli(words, { engine: engine(), home, ...options })
    const id = (await run(['run', 'image', 'a fox', '--local', '--no-wait'])).stdout.trim()
    await run(['wait', '--local', '-o', '-', id])
    const page = join(home, 'gallery.html')
    expect(await run(['gallery', '-o', page])).toMatchObject({ code: 0 })
    expect(readFileSync(page, 'utf8')).toContain(TEXT)
    const drawn: string[] = []
    const pictures = {
      draw: async ({ path }: { readonly path: string }) => `${drawn.push(path)}`,
      ask: () => undefined,
    }
    const env = { NO_COLOR: '', CI: '', TERM: 'xterm-256color', LC_ALL: 'C.UTF-8' }
    const tty = { stdout: true, stderr: true }
    await run(['show', id, '--show'], { pictures, env, tty, columns: 0 })
    expect(drawn).toEqual([expect.stringContaining(join(home, 'state', 'local'))])
  })
})
