/** Page with the form of a new run: empty, or filled from an existing run. */
import { useEffect, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { request } from '../api.js'
import { Button } from '../components/button.js'
import { ErrorNotice, Notice, SkeletonLines } from '../components/notice.js'
import { Page } from '../components/page.js'
import { plural } from '../format.js'
import { useResource } from '../resource.js'
import { linkTo } from '../routes.js'
import { useStore } from '../store.js'
import { drafts, EMPTY_DRAFT, type Form, NEW_RUN } from './drafts.js'
import { type FilledForm as FilledValues, filledForm } from './form-fields.js'
import { NewRunForm } from './new-run-form.js'
import { referenceOfUrl } from './references.js'

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

const EMPTY_FORM: Form = { name: NEW_RUN, start: EMPTY_DRAFT }

function EmptyForm() {
  useState(() => drafts.load(NEW_RUN))
  return <NewRunForm form={EMPTY_FORM} />
}

function FormOfRun({ id }: { readonly id: string }) {
  const [wasChanged] = useState(() => drafts.load(id))
  const isChanged = useStore(drafts.store).has(id)
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
  return (
    <>
      {wasChanged && isChanged && (
        <Notice
          title="Your changes of before are kept."
          action={
            <Button size="small" onClick={() => drafts.forget(id)}>
              Undo them
            </Button>
          }
        />
      )}
      <FilledForm run={run.data} />
    </>
  )
}

function FilledForm({ run: { id, kind, input } }: { readonly run: RunDetails }) {
  const filled = filledForm(kind, input ?? {})
  const [form] = useState<Form>(() => ({
    name: id,
    start: { ...EMPTY_DRAFT, kind, values: filled.values, references: filled.urls.map(referenceOfUrl) },
  }))
  return (
    <>
      <LeftOut filled={filled} />
      <NewRunForm form={form} />
    </>
  )
}

/** Lists the parts of the run that are missing from the form. */
function LeftOut({ filled: { lostImages, unknown } }: { readonly filled: FilledValues }) {
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
