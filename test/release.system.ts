/** A release, as RELEASING.md describes it, in a repository of its own. Nothing is published. */
import { execFileSync } from 'node:child_process'
import { cpSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { temporaryFolder } from './support/temporary-folder.js'

const FILES = ['package.json', 'package-lock.json', 'CHANGELOG.md', 'README.md', 'docs', 'deploy/release.mjs']
const IDENTITY = { name: 'A', email: 'a@example.com' }

function createRepository() {
  const [home, folder] = [temporaryFolder(), temporaryFolder()]
  for (const file of FILES) cpSync(file, join(folder, file), { recursive: true })
  const run = (program: string, ...words: readonly string[]) =>
    execFileSync(program, words, {
      cwd: folder,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        ...{ PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: '1' },
        ...{ GIT_AUTHOR_NAME: IDENTITY.name, GIT_AUTHOR_EMAIL: IDENTITY.email },
        ...{ GIT_COMMITTER_NAME: IDENTITY.name, GIT_COMMITTER_EMAIL: IDENTITY.email },
      },
    })
  run('npm', 'pkg', 'set', 'repository=github:acme/rushes')
  run('git', 'init', '--quiet')
  run('git', 'add', '.')
  run('git', 'commit', '--quiet', '--message', 'Start')
  return { run, text: (file: string) => readFileSync(join(folder, file), 'utf8'), folder }
}

test('npm version writes the version into the changelog, the docs and the tag', () => {
  const { run, text, folder } = createRepository()
  run('npm', 'version', '9.8.7', '-m', 'Release %s')
  const [, notes = ''] = /^## 9\.8\.7 \(\d{4}-\d\d-\d\d\)\n([\s\S]*?)^## 0/m.exec(text('CHANGELOG.md')) ?? []
  expect(notes).toContain('### Added')
  expect(text('CHANGELOG.md')).toMatch(/^## Unreleased\n\n## 9\.8\.7 /m)
  expect(text('docs/github-actions.md')).toContain('uses: acme/rushes@v9.8.7\n')
  expect(text('README.md')).toContain('rushes-9.8.7.tgz')
  for (const file of readdirSync(join(folder, 'docs')).filter((name) => name.endsWith('.md')))
    expect(text(`docs/${file}`), file).not.toMatch(/rushes(@v|-)0\./)
  expect(run('git', 'tag').trim()).toBe('v9.8.7')
  expect(run('git', 'status', '--porcelain')).toBe('')
})

test('npm version refuses a release with an empty changelog, and creates no tag', () => {
  const { run, text, folder } = createRepository()
  const changelog = text('CHANGELOG.md').replace(/^## Unreleased\n[\s\S]*?(?=^## 0)/m, '## Unreleased\n\n')
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog)
  run('git', 'commit', '--quiet', '--all', '--message', 'Empty')
  expect(() => run('npm', 'version', '9.8.7')).toThrow('"Unreleased" has no entries')
  expect(text('CHANGELOG.md')).toBe(changelog)
  expect(run('git', 'tag')).toBe('')
})

test('the workflow publishes only what .ci/run has passed, and stores no token', () => {
  const workflow = parse(readFileSync('.github/workflows/release.yml', 'utf8'))
  const steps: readonly string[] = workflow.jobs.release.steps.flatMap(
    ({ run }: { run?: string }) => run ?? [],
  )
  const checks = steps.indexOf('.ci/run')
  expect(checks).toBeGreaterThan(0)
  expect(steps.findIndex((step) => step.includes('npm publish'))).toBeGreaterThan(checks)
  expect(readFileSync('.github/workflows/release.yml', 'utf8')).not.toContain('secrets.')
  expect(workflow.permissions).toEqual({ contents: 'write', 'id-token': 'write' })
})
