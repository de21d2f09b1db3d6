/**
 * Writes a new version into the changelog and the docs. `npm version <version>` runs it between its change of
 * package.json and its commit (deploy/RELEASING.md). The repository's name comes from `repository` in package.json.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'

const { version, repository } = JSON.parse(readFileSync('package.json', 'utf8'))
const change = (path, work) => writeFileSync(path, work(readFileSync(path, 'utf8')))

change('CHANGELOG.md', (text) => {
  const [, changes = ''] = /^## Unreleased\n([\s\S]*?)(^## |$(?![\s\S]))/m.exec(text) ?? []
  if (changes.trim() === '')
    throw new Error('CHANGELOG.md: "Unreleased" has no entries. Write what users gain.')
  const today = new Date().toISOString().slice(0, 10)
  return text.replace('## Unreleased\n', `## Unreleased\n\n## ${version} (${today})\n`)
})

const owner = /github(?:\.com)?[/:]([^/]+)\//.exec(repository?.url ?? repository ?? '')?.[1]
const paths = ['README.md', 'docs/github-actions.md', 'docs/library.md', 'docs/scripting.md']
for (const path of paths)
  change(path, (text) =>
    text
      .replace(/rushes-\d+\.\d+\.\d+[\w.-]*\.tgz/g, `rushes-${version}.tgz`)
      .replace(
        /\b([\w-]+)\/rushes@v\d+\.\d+\.\d+[\w.-]*/g,
        (_, name) => `${owner ?? name}/rushes@v${version}`,
      )
      .replace(/`v\d+\.\d+\.\d+[\w.-]*`/g, `\`v${version}\``),
  )

execFileSync('git', ['add', 'CHANGELOG.md', ...paths])
