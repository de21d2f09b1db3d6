/** Page with the form of a new run: empty, or filled from an existing run. */
import { useEffect, useState } from 'preact/hooks'
import { CONSOLE_PATHS, type RunDetails } from '../../protocol/console.js'
import { printable } from '../../protocol/text.js'
import { request } from '../api.js'
import { Button } from '../components/button.js'
import { ErrorNotice, Notice, SkeletonLines } from '../components/notice.js'
import { Page } from '../components/page.js'
import { plural } from '../format.js'
import { findModel, type Models, useModels } from '../model-documents.js'
import { type Resource, useResource } from '../resource.js'
import { linkTo } from '../routes.js'
import { useSession } from '../session.js'
import { useStore } from '../store.js'
import { drafts, EMPTY_DRAFT, type Form, NEW_RUN } from './drafts.js'
import { type FilledForm as FilledValues, filledForm } from './form-fields.js'
import { NewRunForm } from './new-run-form.js'
import { referenceOfUrl } from './references.js'

export function NewRunPage({ query }: { readonly query: Readonly<Record<string, string>> }) {
  const { from } = query
  const models = useModels()
  useEffect(() => scrollTo({ top: 0, behavior: 'instant' }), [from])
  return (
    <Page
      title="New run"
      {...(from !== undefined && {
        above: (
          <a class="back-link" href={linkTo('runs', { param: from })}>
            Back to the run
          </a>
        ),
      })}
    >
      {models.data === undefined ? (
        <Unread {...models} />
      ) : from === undefined ? (
        <EmptyForm models={models.data} />
      ) : (
        <FormOfRun key={from} id={from} models={models.data} />
      )}
    </Page>
  )
}

const EMPTY_FORM: Form = { name: NEW_RUN, start: EMPTY_DRAFT }

function EmptyForm({ models }: { readonly models: Models }) {
  useState(() => drafts.load(NEW_RUN))
  return <NewRunForm form={EMPTY_FORM} models={models} />
}

function Unread({ error, reload }: Resource<unknown>) {
  return error === undefined ? <SkeletonLines /> : <ErrorNotice error={error} onRetry={reload} />
}

function FormOfRun({ id, models }: { readonly id: string; readonly models: Models }) {
  const [wasChanged] = useState(() => drafts.load(id))
  const isChanged = useStore(drafts.store).has(id)
  const run = useResource(
    (signal) => request<RunDetails>('GET', CONSOLE_PATHS.run, { params: { id }, signal }),
    [id],
  )
  if (run.data === undefined) return <Unread {...run} />
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
      <FilledForm run={run.data} models={models} />
    </>
  )
}

function FilledForm({ run, models }: { readonly run: RunDetails; readonly models: Models }) {
  const defaults = useSession().models
  const known = findModel(models, run.model)
  const document = known ?? findModel(models, defaults[run.kind]) ?? models[0]
  const filled = filledForm(document, run.input ?? {})
  const [form] = useState<Form>(() => ({
    name: run.id,
    start: {
      ...EMPTY_DRAFT,
      ...{ model: document.name, values: filled.values, references: filled.urls.map(referenceOfUrl) },
    },
  }))
  return (
    <>
      {known === undefined && (
        <Notice tone="warn" title={`The service no longer has the model ${printable(run.model)}.`}>
          Choose another one. The form has the values of the run that {printable(document.name)} also takes.
        </Notice>
      )}
      <LeftOut filled={filled} />
      <NewRunForm form={form} models={models} />
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
