/** `rushes gallery`: which runs are on the page, and where it is written. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { GalleryRun } from '../../src/gallery/index.js'
import {
  addRow,
  createCliService,
  outputOf,
  runCli,
  temporaryFolder,
  usageErrorOf,
} from '../support/index.js'
import type { PastRun } from '../support/journal.js'

const runsOf = (html: string): readonly GalleryRun[] =>
  JSON.parse(/<script type="application\/json" id="runs">(.*)<\/script>/.exec(html)?.[1] ?? '')

/** A home, a folder for results and pages, and the runs on a page that is written there. */
function createDesk() {
  const [home, folder] = [temporaryFolder(), temporaryFolder()]
  const page = join(folder, 'gallery.html')
  return {
    home,
    folder,
    page,
    gallery: (flags = '') => runCli(`gallery -o ${page} ${flags}`, { home }),
    /** A run whose outputs were written as files, with the content that is given. */
    add(id: string, files: Readonly<Record<string, string>>, more: Partial<PastRun> = {}) {
      const written = Object.entries(files).map(([name, content]) => {
        const path = join(folder, name)
        writeFileSync(path, content)
        return { path, bytes: content.length, sha256: content, url: `https://cdn.example.com/${id}/${name}` }
      })
      addRow(home, { id, urls: written.map(({ url }) => url), files: written, ...more })
    },
    shown: () => runsOf(readFileSync(page, 'utf8')),
    ids: () => runsOf(readFileSync(page, 'utf8')).map(({ id }) => id),
  }
}

it('gallery of a manifest shows its results alone, and is a usage error for one without runs', async () => {
  const { add, folder, gallery, ids } = createDesk()
  const manifest = join(folder, 'shots.yaml')
  add('run_1', { 'whale.png': 'whale' }, { name: 'whale', manifest })
  add('run_2', { 'fox.png': 'fox' })
  outputOf(await gallery(manifest))
  expect(ids()).toEqual(['run_1'])
  expect(usageErrorOf(await gallery('other.yaml'))).toBe('error: other.yaml: no such file.\n')
  const other = join(folder, 'other.yaml')
  writeFileSync(other, 'runs: []')
  expect(usageErrorOf(await gallery(other))).toContain(
    'the journal of this machine has no runs of this manifest.',
  )
})

it('gallery writes a page with the runs that have files, newest first, and prints its path', async () => {
  const { run } = await createCliService()
  const folder = temporaryFolder()
  await run(`run image "a fox" -o ${join(folder, 'fox.png')}`)
  await run(['run', 'video', 'a "boat" & <sail>', '-o', join(folder, 'out', 'boat #1?.png')])
  await run('run image "only a link"')
  const page = join(folder, 'pages', 'index.html')
  const { code, stdout, stderr } = await run(`gallery -o ${page}`)
  expect({ code, stdout }).toEqual({ code: 0, stdout: `${page}\n` })
  expect(stderr).toBe('Skipped 1 run without a downloaded file. To download one: `rushes download <id>`.\n')
  const [boat, fox, ...others] = runsOf(readFileSync(page, 'utf8'))
  expect(others).toEqual([])
  expect(boat).toMatchObject({
    prompt: 'a "boat" & <sail>',
    model: 'rushes/preview-video',
  })
  expect(boat?.files[0]).toMatchObject({ name: '../out/boat #1?.png', href: '../out/boat%20%231%3F.png' })
  expect(fox?.files).toEqual([
    {
      ...{ name: '../fox.png', href: '../fox.png', media: 'image', isOpened: true, ratio: 1 },
    },
  ])
})

it('gallery shows what is left of a run, and leaves out runs whose files are gone or have another size, as text and as JSON', async () => {
  const desk = createDesk()
  desk.add('run_both', { 'a.png': 'a', 'b.png': 'b' })
  desk.add('run_gone', { 'c.png': 'c' })
  desk.add('run_changed', { 'd.png': 'd' })
  rmSync(join(desk.folder, 'b.png'))
  rmSync(join(desk.folder, 'c.png'))
  writeFileSync(join(desk.folder, 'd.png'), 'longer')
  const { stderr } = await desk.gallery()
  expect(stderr).toBe('Skipped 2 runs (files missing or changed).\n')
  expect(desk.shown().map(({ id, files }) => [id, files.map(({ name }) => name)])).toEqual([
    ['run_both', ['a.png']],
  ])
  const page = readFileSync(desk.page)
  expect(page.toString()).toContain('<p>Skipped 2 runs (files')
  const json = await desk.gallery('--json')
  expect([json.stderr, JSON.parse(json.stdout)]).toEqual([
    '',
    {
      ...{ path: desk.page, runs: 1, files: 1, bytes: page.length },
      left_out: { missing: 2, not_downloaded: 0 },
    },
  ])
})

it('gallery takes the filters of list', async () => {
  const desk = createDesk()
  const labels = ['spring', '春']
  desk.add('run_a', { 'a.png': 'a' })
  desk.add('run_b', { 'b.png': 'b' }, { kind: 'video', model: 'acme/cinema-1' })
  desk.add('run_c', { 'c.png': 'c' }, { labels, address: 'https://other.example.com' })
  addRow(desk.home, { id: 'run_d' })
  for (const [flags, ids] of [
    ['--kind video', ['run_b']],
    ['--label spring --label 春', ['run_c']],
    ['--base-url http://127.0.0.1:1', ['run_b', 'run_a']],
    ['--since 1h', []],
    ['', ['run_c', 'run_b', 'run_a']],
  ] as const) {
    outputOf(await desk.gallery(flags))
    expect(desk.ids()).toEqual(ids)
  }
  expect(desk.shown()[0]?.labels).toEqual(labels)
  usageErrorOf(await desk.gallery('--limit x'))
})

it('gallery replaces the page of an earlier command in one step, and shows a path under the run that wrote it last', async () => {
  const desk = createDesk()
  await desk.gallery()
  desk.add('run_old', { 'a.png': 'old' })
  desk.add('run_new', { 'a.png': 'new' })
  outputOf(await desk.gallery())
  expect(desk.ids()).toEqual(['run_new'])
  expect(readdirSync(desk.folder).sort()).toEqual(['a.png', 'gallery.html'])
})

it('gallery does not replace a file of another program', async () => {
  const desk = createDesk()
  writeFileSync(desk.page, '<!doctype html>\n<title>mine</title>')
  const message = usageErrorOf(await desk.gallery())
  expect(message).toContain(`${desk.page} already exists, and is not a page of \`rushes gallery\`.`)
  expect(readFileSync(desk.page, 'utf8')).toContain('mine')
})

it('gallery -o <folder> writes gallery.html into the folder', async () => {
  const desk = createDesk()
  const into = (path: string) => runCli(`gallery -o ${path}`, { home: desk.home })
  expect(outputOf(await into(desk.folder))).toBe(`${desk.page}\n`)
  expect(outputOf(await into(`${desk.folder}/new/`))).toBe(`${desk.folder}/new/gallery.html\n`)
})

it.each([
  ['a path below a file', 'file/x.html', /Cannot write the page: .*file/],
  ['a pipe', 'pipe', /pipe already exists/],
])('gallery -o does not write to %s', async (_, path, message) => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'file'), '')
  execFileSync('mkfifo', [join(folder, 'pipe')])
  expect(usageErrorOf(await runCli(`gallery -o ${folder}/${path}`))).toMatch(message)
})

it('gallery does not write to standard output', async () => {
  usageErrorOf(await runCli('gallery -o -'))
})
