/** Files whose texts are all in the catalogue: none of them may show a text of its own again. */

import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

/** A file is added once the made-up language shows all of it (`tests/portal/test_a_language_is_chosen.py`). */
const MOVED: readonly string[] = [
  'api/client.ts',
  'api/codeupload.ts',
  'api/logs.ts',
  'api/templates.ts',
  'components/AccountMenu.tsx',
  'components/AlertCount.tsx',
  'components/AlertHistory.tsx',
  'components/AlertTable.tsx',
  'components/BesideCorral.tsx',
  'components/BudgetDialogs.tsx',
  'components/Budgets.tsx',
  'components/Channels.tsx',
  'components/ClusterMap.tsx',
  'components/CodeFolder.tsx',
  'components/Copy.tsx',
  'components/DeviceLinks.tsx',
  'components/Dialog.tsx',
  'components/EventList.tsx',
  'components/ExitNote.tsx',
  'components/ExtendDialog.tsx',
  'components/FetchLink.tsx',
  'components/FilePreview.tsx',
  'components/FileTable.tsx',
  'components/Filters.tsx',
  'components/FlameGraph.tsx',
  'components/FormDialog.tsx',
  'components/Granted.tsx',
  'components/GroupDetail.tsx',
  'components/GroupDialog.tsx',
  'components/HealthCounts.tsx',
  'components/IdleNotice.tsx',
  'components/IdleTable.tsx',
  'components/ImportItems.tsx',
  'components/JobActions.tsx',
  'components/JobCache.tsx',
  'components/JobEdit.tsx',
  'components/JobEfficiency.tsx',
  'components/JobFields.tsx',
  'components/JobFile.tsx',
  'components/JobLog.tsx',
  'components/JobOutputs.tsx',
  'components/JobPreflight.tsx',
  'components/JobProfiles.tsx',
  'components/JobRanks.tsx',
  'components/JobSeries.tsx',
  'components/JobTable.tsx',
  'components/LanguageChoice.tsx',
  'components/ListSetup.tsx',
  'components/LogView.tsx',
  'components/ManyJobs.tsx',
  'components/Markdown.tsx',
  'components/MoreFields.tsx',
  'components/NextInLine.tsx',
  'components/NodeActions.tsx',
  'components/NodeHealth.tsx',
  'components/NodeMarks.tsx',
  'components/NodeRow.tsx',
  'components/NodeTabs.tsx',
  'components/Notices.tsx',
  'components/OrderDialog.tsx',
  'components/Outlook.tsx',
  'components/Overview.tsx',
  'components/Palette.tsx',
  'components/PasswordForm.tsx',
  'components/PeopleTabs.tsx',
  'components/PeriodChoice.tsx',
  'components/Problems.tsx',
  'components/ProfileAdvice.tsx',
  'components/ProfileBeside.tsx',
  'components/ProfileCurves.tsx',
  'components/ProfileMemory.tsx',
  'components/ProfileProgress.tsx',
  'components/ProfileShown.tsx',
  'components/ProfileTimes.tsx',
  'components/QueueChoice.tsx',
  'components/QueueDetail.tsx',
  'components/QueueManaging.tsx',
  'components/QueueTabs.tsx',
  'components/QueueWeeks.tsx',
  'components/Receipts.tsx',
  'components/RoleChoice.tsx',
  'components/SavedFilters.tsx',
  'components/SearchField.tsx',
  'components/Services.tsx',
  'components/SessionEnded.tsx',
  'components/ShareBar.tsx',
  'components/ShareEditor.tsx',
  'components/ShareEffect.tsx',
  'components/ShareStrip.tsx',
  'components/ShareTemplate.tsx',
  'components/Shell.tsx',
  'components/SilenceDialog.tsx',
  'components/Silences.tsx',
  'components/Status.tsx',
  'components/StopMany.tsx',
  'components/StorageDialog.tsx',
  'components/Tabs.tsx',
  'components/TagMany.tsx',
  'components/TakeProfile.tsx',
  'components/TaskTable.tsx',
  'components/TaskTerminal.tsx',
  'components/TensorBoardButton.tsx',
  'components/Time.tsx',
  'components/Totals.tsx',
  'components/TrialNote.tsx',
  'components/Troubles.tsx',
  'components/UsageTabs.tsx',
  'components/UseChart.tsx',
  'components/UsePeek.tsx',
  'components/UseTable.tsx',
  'components/UserChoice.tsx',
  'components/UserDialog.tsx',
  'components/UserQuestion.tsx',
  'components/Waiting.tsx',
  'components/WorkDone.tsx',
  'components/useEach.ts',
  'components/useTitle.ts',
  'lib/alerts.ts',
  'lib/budgets.ts',
  'lib/bytes.ts',
  'lib/codefolder.ts',
  'lib/health.ts',
  'lib/held.ts',
  'lib/home.ts',
  'lib/idle.ts',
  'lib/ignore.ts',
  'lib/jobfields.ts',
  'lib/joblist.ts',
  'lib/keys.ts',
  'lib/links.ts',
  'lib/managing.ts',
  'lib/offline.ts',
  'lib/palette.ts',
  'lib/people.ts',
  'lib/pictures.ts',
  'lib/profiles.ts',
  'lib/queuehistory.ts',
  'lib/series.ts',
  'lib/shares.ts',
  'lib/sharing.ts',
  'lib/storageform.ts',
  'lib/templates.ts',
  'lib/tiles.ts',
  'lib/time.ts',
  'lib/usage.ts',
  'lib/work.ts',
  'pages/Account.tsx',
  'pages/Alerts.tsx',
  'pages/Audit.tsx',
  'pages/Compare.tsx',
  'pages/Groups.tsx',
  'pages/Home.tsx',
  'pages/Idle.tsx',
  'pages/Job.tsx',
  'pages/Jobs.tsx',
  'pages/Line.tsx',
  'pages/Lost.tsx',
  'pages/Nodes.tsx',
  'pages/Notebook.tsx',
  'pages/OpenService.tsx',
  'pages/Queues.tsx',
  'pages/Receipts.tsx',
  'pages/ServerParts.tsx',
  'pages/SignIn.tsx',
  'pages/Storage.tsx',
  'pages/Storages.tsx',
  'pages/Submit.tsx',
  'pages/Template.tsx',
  'pages/Templates.tsx',
  'pages/Usage.tsx',
  'pages/Users.tsx',
  'pages/UsersBatch.tsx',
];

/** Names, keys and commands are the same in each language. */
const NAMES: readonly RegExp[] = [/^\s*(Corral|· Corral)\s*$/, /^Ctrl[ -]K$/, /^tgram:\/\//, /^corral /];

/** Attributes and properties of components that a reader sees or hears; `said`, `word` and `what` are components' own. */
const SPOKEN = /^(aria-label|aria-description|aria-roledescription|title|placeholder|alt|label|hint|heading|said|word|what|name|line)$/;
/** Of these the values are names of fields and commands. */
const SILENT = /^(name|line)$/;

const isText = (text: string) => /\p{L}/u.test(text) && !NAMES.some((name) => name.test(text));
/** A capital and a second word, or a full stop: what is read, unlike a class, a path or a key. */
const isSentence = (text: string) => isText(text) && (/^\P{L}*\p{Lu}\p{L}*[ ,:…]/u.test(text) || /\p{L}[.?!…]$/u.test(text));

/** The texts of a source that a reader would see, each with its line. */
function texts(path: string, source: string): string[] {
  const file = ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true, path.endsWith('x') ? ts.ScriptKind.TSX : ts.ScriptKind.TS);
  const found: string[] = [];
  const tell = (node: ts.Node, text: string) => {
    found.push(`${path}:${file.getLineAndCharacterOfPosition(node.getStart()).line + 1} ${text.trim()}`);
  };
  /** `shown`: whether each literal below is on the page; `quiet`: whether none is. */
  const visit = (node: ts.Node, shown: boolean, quiet: boolean): void => {
    if (ts.isImportDeclaration(node) || ts.isTypeNode(node)) return;
    if (ts.isJsxText(node) && isText(node.text)) tell(node, node.text);
    if (ts.isJsxAttribute(node)) {
      const name = node.name.getText();
      const spoken = SPOKEN.test(name) && !SILENT.test(name);
      if (node.initializer) visit(node.initializer, spoken, !spoken && name !== 'children' && !/^on[A-Z]/.test(name));
      return;
    }
    if (ts.isBinaryExpression(node) && /^[!=]==?$/.test(node.operatorToken.getText())) return;
    if (ts.isJsxExpression(node) && !ts.isJsxAttribute(node.parent)) shown = true;
    if (ts.isArrowFunction(node) || ts.isElementAccessExpression(node)) shown = false;
    if (ts.isCallExpression(node)) shown = node.expression.getText() === 'useTitle';
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)) {
      if (!quiet && (shown ? isText(node.text) : isSentence(node.text))) tell(node, node.text);
    }
    ts.forEachChild(node, (child) => visit(child, shown, quiet));
  };
  visit(file, false, false);
  return found;
}

describe('a file that is moved to the catalogue', () => {
  it.each(MOVED)('%s shows no text of its own', (path) => {
    expect(texts(path, readFileSync(new URL(`../${path}`, import.meta.url), 'utf8'))).toEqual([]);
  });
});

it('finds a text wherever a reader would see it', () => {
  const page = `
    import { a } from 'A module.';
    const REASON = { wrong: 'It went wrong.', 'not-read': 'a b c' };
    function Page() {
      useTitle('Jobs');
      return <p className="One two" aria-label="Spoken" title={x === 'Equal' ? 'Chosen' : undefined} role={'Some role'}>
        Written {busy ? 'busy' : '…'} {\`\${n} left\`} {fill(texts.known, { key: 'value' })} {list.map((each) => <b key="a">{each}</b>)}
        <Field label={named ? \`Field \${n}\` : ''} onPick={() => pick('Key Of')} /> <kbd>Ctrl K</kbd>
      </p>;
    }`;
  const words = texts('x.tsx', page).map((each) => each.replace(/^\S+ /, ''));
  expect(words).toEqual(['It went wrong.', 'Jobs', 'Spoken', 'Chosen', 'Written', 'busy', 'left', 'Field', 'Key Of']);
});
