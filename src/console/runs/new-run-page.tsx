/** The form of a new run, empty or filled from another run. */
import { useEffect } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { request } from '../api.js'
import { ErrorNotice, Notice, SkeletonLines } from '../components/notice.js'
import { Page } from '../components/page.js'
import { plural } from '../format.js'
import { useResource } from '../resource.js'
import { linkTo } from '../routes.js'
import { useSession } from '../session.js'
import { type FilledForm, filledForm } from './form.js'
import { NewRunForm } from './new-run-form.js'
import { referenceOfUrl } from './read-references.js'
import { savedDraft } from './saved-draft.js'

export function NewRunPage({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { from } = query
  useEffect(() => scrollTo({ top: 0, behavior: 'instant' }), [from])
  return (
    <Page
      title="New run"
      width="narrow"
      {...(from !== undefined && {
        above: (
          <a class="back-link" href={linkTo('runs', { param: from })}>
            Back to the run
          </a>
        ),
      })}
    >
      {from === undefined ? <EmptyForm /> : <FormOfRun key={from} id={from} />}
    </Page>
  )
}

function EmptyForm() {
  const { email } = useSession()
  return <NewRunForm start={savedDraft(email)} isDraft />
}

function FormOfRun({ id }: { readonly id: string }) {
  const run = useResource(
    (signal) => request<RunDetails>('GET', CONSOLE_PATHS.run, { params: { id }, signal }),
    [id],
  )
  if (run.data === undefined)
    return run.error === undefined ? (
      <SkeletonLines />
    ) : (
      <ErrorNotice error={run.error} onRetry={run.reload} />
    )
  const { kind, input } = run.data
  const filled = filledForm(kind, input ?? {})
  const start = { kind, values: filled.values, references: filled.urls.map(referenceOfUrl) }
  return (
    <>
      <LeftOut filled={filled} />
      <NewRunForm start={start} />
    </>
  )
}

/** What the run had and the form cannot have. */
function LeftOut({ filled: { lostImages, unknown } }: { readonly filled: FilledForm }) {
  const names = unknown.map(printable)
  return (
    <>
      {lostImages > 0 && (
        <Notice tone="warn" title={`${plural(lostImages, 'reference image')} left out.`}>
          The service does not send back images that were sent as data. Add them again.
        </Notice>
      )}
      {names.length > 0 && (
        <Notice tone="warn" title="Left out: fields that the model does not define.">
          {names.join(', ')}
        </Notice>
      )}
    </>
  )
}
