#!/usr/bin/python3
"""Writes odd tables and arrays into a folder, each with what pandas, h5py or numpy reads of it.

    tests/data/odd_tables.py csv|hdf5|npy FOLDER

csv needs Debian's python3-pandas, hdf5 its python3-h5py, and all python3-numpy.  FOLDER/list.tsv has a line for each
file:

    NAME  KEYS  read     SAMPLES  TOLERANCE     (NAME.x: the samples as float64, row by row; NAME.labels: a line each)
    NAME  KEYS  refused  REASON                 (a part of dtrain's message)

KEYS are those of the config's section data, in which FOLDER stands for the folder.  Samples are as a batch has them:
channels first, bytes of images divided by 255.  TOLERANCE is relative, beyond rounding to float32.
"""
import gzip
import io
import sys
from pathlib import Path

import numpy

PLAIN = "a,b,label\n1,2,0\n3,4,1\n"
IMAGES = "mean: [0], deviation: [1], "  # no normalisation


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.lines = []

    def read(self, name, keys, samples, labels, tolerance=0.0):
        samples = numpy.asarray(samples, numpy.float64)
        samples.tofile(self.folder / f"{name}.x")
        (self.folder / f"{name}.labels").write_text("".join(f"{label}\n" for label in labels))
        self.lines.append(f"{name}\t{keys}\tread\t{len(samples)}\t{tolerance}")

    def refused(self, name, keys, reason):
        self.lines.append(f"{name}\t{keys}\trefused\t{reason}")

    def finish(self):
        (self.folder / "list.tsv").write_text("\n".join(self.lines) + "\n")


# CSV


def csv_read():
    """Yields name, file, keys, the label's column, and how pandas reads it."""
    none = {"header": None}
    blanks = {"sep": r"\s+"}
    yield "plain", PLAIN, "", -1, {}
    yield "bom", "\ufeff" + PLAIN, "", -1, {"encoding": "utf-8-sig"}
    yield "bom_numbers", "\ufeff1,2,0\n3,4,1\n", "", -1, {"encoding": "utf-8-sig", **none}
    yield "bom_quotes", '\ufeff"a","b",label\n1,2,0\n3,4,1\n', "", -1, {"encoding": "utf-8-sig"}
    yield "crlf", PLAIN.replace("\n", "\r\n"), "", -1, {}
    yield "no_last_end", PLAIN[:-1], "", -1, {}
    yield "blank_lines_at_end", PLAIN + "\n\n\n", "", -1, {}
    yield "blank_crlf_at_end", PLAIN.replace("\n", "\r\n") + "\r\n\r\n", "", -1, {}
    yield "separator_in_quotes", '"a,1",b,kind\n1,2,"x, y"\n3,4,z\n', "", -1, {}
    yield "other_separator_in_quotes", '"a; b; c",d\n1,0\n2,1\n', "", -1, {}
    yield "quoted_numbers", '"a","b","label"\n"1","2.5","0"\n"3","4","1"\n', "", -1, {}
    yield "doubled_quotes", 'a,kind\n1,"say ""hi"""\n2,no\n', "", -1, {}
    yield "single_quotes", "a,kind\n1,'x'\n2,'y'\n", "", -1, {}
    yield "blanks_around", "a , b , label\n1 , 2 , 0\n 3,4 ,1\n", "", -1, {"skipinitialspace": True}
    yield "pandas_index", ",a,b,label\n0,1.5,2,0\n1,3,4,1\n2,5,7,1\n", "", -1, {"index_col": 0}
    yield "pandas_index_and_counted_columns", ",0,1,2\n0,1.5,2,0\n1,3,4,1\n2,5,7,1\n", "", -1, {"index_col": 0}
    yield "pandas_index_twice", ("Unnamed: 0,a,b,label\n0,1.5,2,0\n1,3,4,1\n2,5,7,1\n"), "", -1, {"index_col": 0}
    yield "pandas_counts_columns", "0,1,2\n1.5,2,0\n3,4,1\n", "", -1, {}
    yield "pandas_counts_columns_beside_label", "0,1,2,label\n1.5,2,3,x\n3,4,5,y\n", "", -1, {}
    yield "years_as_names", "2020,2021,label\n1.5,2,0\n3,4,1\n", "header: yes, ", -1, {}
    yield "decimal_comma", "a;b;label\n1,5;-2,25;0\n3;,5;1\n", "decimal: ',', ", -1, {"sep": ";", "decimal": ","}
    yield "decimal_comma_tab", "1,5\t2\t0\n3\t4,5\t1\n", "decimal: ',', ", -1, {"sep": "\t", "decimal": ",", **none}
    yield "semicolon", PLAIN.replace(",", ";"), "", -1, {"sep": ";"}
    yield "bars", PLAIN.replace(",", "|"), "", -1, {"sep": "|"}
    yield "tabs", PLAIN.replace(",", "\t"), "", -1, {"sep": "\t"}
    yield "blanks", "a  b label\n1 2.5 0\n30  4 1\n", "", -1, blanks
    yield "blanks_in_front", "  1   2  0\n 10  20  1  \n", "", -1, {**blanks, **none}
    yield "tabs_and_blanks", "1 \t2\t 0\n3  4\t\t1\n", "separator: space, ", -1, {**blanks, **none}
    yield "savetxt", savetxt(numpy.array([[1.5, 1e-7, 0], [-3e5, 4, 1]])), "", -1, {**blanks, **none}
    yield "comment_as_header", "# a,b,label\n1,2,0\n3,4,1\n", "", -1, {}
    yield "leading_plus", "+1,+2.5,+0\n-3,+4e+1,+1\n", "", -1, none
    yield "exponents", "1e3,1E-3,0\n-2.5e+2,1e0,1\n", "", -1, none
    yield "bare_points", ".5,5.,0\n-.5,-5.,1\n", "", -1, none
    yield "leading_zeros", "007,00.5,00\n010,-01,01\n", "", -1, none
    yield "many_digits", "0.1234567890123456789,1700000001,0\n16777217,123456789012345678,1\n", "", -1, none
    yield "tiny", "1e-30,1e-60,0\n-1e-38,1,1\n", "", -1, none
    yield "unicode_names", "größe,長さ,art\n1,2,grün\n3,4,blau\n", "label: art, ", -1, {}
    yield "name_with_comma", '"a, b",c,label\n1,2,0\n3,4,1\n', "", -1, {}
    yield "duplicate_names", "a,a,label\n1,2,0\n3,4,1\n", "", -1, {}
    yield "one_line", "1,2,0\n", "", -1, none
    yield "long_line", ",".join(str(i * 0.5) for i in range(3000)) + ",1\n", "", -1, none
    yield "truths_as_labels", "a,b,label\n1,2,true\n3,4,false\n", "", -1, {}
    yield "Truths_as_labels", "a,b,label\n1,2,True\n3,4,False\n", "", -1, {}
    yield "labels_with_point", "1,2,0.0\n3,4,1.0\n", "", -1, none
    yield "labels_from_one", "1,2,1\n3,4,2\n", "", -1, none
    yield "mixed_labels", "a,kind\n1,2\n2,x\n3,2\n", "", -1, {}
    yield "label_first", "label,a,b\n0,1,2\n1,3,4\n", "label: 1, ", 0, {}
    yield "label_first_by_name", "kind,a,b\nx,1,2\ny,3,4\n", "label: kind, ", 0, {}
    yield "label_in_the_middle", "1,0,2\n3,1,4\n", "label: 2, ", 1, none
    yield "ignored", "id,a,date,label\nu1,1,2024-01-31,0\nu2,3,2024-02-01,1\n", "ignore: [id, 3], ", -1, {
        "usecols": ["a", "label"]}
    yield "targets", "a,price\n1,1.5\n2,-3e5\n", "task: regression, ", -1, {}


def csv_refused():
    header = "a,b,label\n"
    number = "not a number"
    yield "empty", "", "", "is empty"
    yield "header_only", header, "", "a header and no samples"
    yield "single_column", "1\n2\n", "", "one field"
    yield "empty_cell", header + "1,,0\n", "", "line 2: column 2 ('b') is empty"
    yield "blank_cell", header + "1,  ,0\n", "", "line 2: column 2 ('b') is empty"
    yield "empty_label", header + "1,2,\n", "", "line 2: column 3 ('label') is empty"
    texts = ("NaN", "nan", "NA", "N/A", "null", "None", "inf", "-inf", "Infinity", "-nan", "1e39", "0x1F", "1_000",
             "1e", "--1", "+-1", "++1", "1d5", "5%", "$5", "1/2", "12:30", "2024-01-31", "True", "\u22125", "１",
             "1\u00a0234", "1 234", "'1'", "1.2.3", "?")
    for i, text in enumerate(texts):
        yield f"text_{i}", header + f"1,{text},0\n", "", f"is '{text}', not a number"
    for text in ("NaN", "inf"):
        yield f"label_{text}", header + f"1,2,{text}\n", "", number
    yield "thousands", header + '"1,234.5",2,0\n', "", number
    yield "thousands_and_decimal_comma", "1.234,5;2;0\n2;3;1\n", "decimal: ',', ", number
    yield "decimal_point_not_comma", "1.5;2;0\n2;3;1\n", "decimal: ',', ", number
    yield "decimal_comma_unsaid", "1,5;2;0\n2,5;3;1\n", "", number
    yield "decimal_comma_unsaid_in_two_columns", "1,5;0\n2,5;1\n", "", number
    yield "decimal_comma_unsaid_with_tab", "1,5\t0\n2,5\t1\n", "", number
    yield "short_line", header + "1,2,0\n1,2\n", "", "line 3 has 2 fields; the first line has 3"
    yield "long_line_in_between", header + "1,2,0\n1,2,3,0\n", "", "line 3 has 4 fields; the first line has 3"
    yield "blank_line_in_between", header + "1,2,0\n\n3,4,1\n", "", "line 3 has 1 field"
    yield "separators_at_end", header + "1,2,0\n,,\n", "", "line 3: column 1 ('a') is empty"
    yield "trailing_separator", "1,2,0,\n3,4,1,\n", "", "is empty"
    yield "trailing_separator_in_header", "a,b,label,\n1,2,0,\n", "", "is empty"
    yield "trailing_separator_in_lines", header + "1,2,0,\n", "", "line 2 has 4 fields"
    yield "title", "My table\n" + PLAIN, "", "line 2 has 1 field"
    yield "markdown", "|a|b|\n|1|2|\n", "", "is empty"
    yield "header_twice", PLAIN + header, "", "line 4: column 1 ('a') is 'a', not a number"
    yield "years_as_names_unsaid", "2020,2021,label\n1.5,2,0\n3,4,1\n", "", "data.header: yes"
    yield "line_end_in_quotes", 'a,kind\n1,"x\ny"\n', "", "its quotes are not closed"
    yield "quote_within", 'a,kind\n1,x"y"\n', "", "its quotes are not around the whole of a field"
    yield "old_mac", PLAIN.replace("\n", "\r"), "", "not a number"
    yield "end_of_file_mark", PLAIN + "\x1a", "", "line 4 has 1 field"
    yield "too_long_line", ",".join(["1234567"] * 200000) + "\n", "", "line 1"
    yield "latin_1", "größe,b,label\n1,2,0\n".encode("latin-1"), "", "UTF-8"
    yield "utf_16", PLAIN.encode("utf-16"), "", "UTF-8"
    yield "zero_byte", "a,b,label\n1,2\0,0\n", "", "zero byte"
    yield "label_unknown", PLAIN, "label: kind, ", "no column is called 'kind'"
    yield "ignore_unknown", PLAIN, "ignore: [c], ", "no column is called 'c'"
    yield "label_not_whole", "1,0.5\n2,1\n", "task: classification, ", "0.5"


def savetxt(array):
    out = io.StringIO()
    numpy.savetxt(out, array)
    return out.getvalue()


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def write_csv(out):
    import pandas

    def read(file, how, **more):
        frame = pandas.read_csv(io.BytesIO(file), **how, **more)
        return frame.reset_index(drop=True)

    def write(name, file, keys):
        (out.folder / name).write_bytes(file)
        return f"train: FOLDER/{name}, {keys}" + "mean: [0], deviation: [1]"

    cases = [(name + ".csv", as_bytes(text), *rest) for name, text, *rest in csv_read()]
    cases.append(("packed.csv.gz", gzip.compress(PLAIN.encode()), "", -1, {}))
    for name, file, keys, label, how in cases:
        plain = gzip.decompress(file) if name.endswith(".gz") else file
        numbers = read(plain, how, float_precision="round_trip")
        labels = read(plain, how, dtype=str, keep_default_na=False).iloc[:, label].str.strip()
        column = numbers.columns[label]
        place = label % len(numbers.columns)
        samples = numbers.iloc[:, [i for i in range(len(numbers.columns)) if i != place]]
        assert column == numbers.columns[place]
        out.read(name, write(name, file, keys), samples.to_numpy(numpy.float64), labels)
    for name, text, keys, reason in csv_refused():
        out.refused(name + ".csv", write(name + ".csv", as_bytes(text), keys), reason)


# Arrays, for both formats

rng = numpy.random.default_rng(1)
LABELS = numpy.array([0, 2, 1, 1, 0])
VECTORS = rng.normal(size=(5, 4)).astype(numpy.float32)
CHW = rng.integers(0, 256, (5, 3, 7, 8), numpy.uint8)
HWC = numpy.ascontiguousarray(CHW.transpose(0, 2, 3, 1))
TIMES = 1.7e9 + rng.integers(0, 10**6, (5, 2)) + 0.25
ONE_HOT = numpy.eye(3)[LABELS]


def normalised(samples):
    return (samples - samples.mean(0)) / samples.std(0)


def label_lines(labels):
    return [" ".join(repr(float(x)) for x in numpy.atleast_1d(label)) for label in labels]


# HDF5


def hdf5_read():
    """Yields name, data, label, keys, samples as dtrain gives them, tolerance, and options of create_dataset."""
    yield "vectors", VECTORS, LABELS, IMAGES, VECTORS, 0, {}
    yield "single_numbers", VECTORS[:, 0], LABELS, IMAGES, VECTORS[:, 0], 0, {}
    yield "chw", CHW, LABELS, IMAGES, CHW / 255, 1e-6, {}
    yield "hwc", HWC, LABELS, IMAGES, CHW / 255, 1e-6, {}
    yield "hwc_said", HWC[:, :3], LABELS, IMAGES + "layout: hwc, ", CHW[:, :, :3] / 255, 1e-6, {}
    yield "chw_where_both_fit", HWC[:, :3], LABELS, IMAGES, HWC[:, :3] / 255, 1e-6, {}
    yield "hwc_floats", HWC / 255, LABELS, IMAGES, CHW / 255, 0, {}
    yield "grey", CHW[:, 0], LABELS, IMAGES, CHW[:, 0] / 255, 1e-6, {}
    yield "vectors_of_caffe", VECTORS[:, :2, None, None], LABELS, IMAGES, VECTORS[:, :2, None, None], 0, {}
    for kind in (">f4", ">f8", "f2", ">f2", "f8", "longdouble"):
        array = VECTORS.astype(kind)
        yield f"kind_{kind.replace('>', 'big_')}", array, LABELS, IMAGES, array, 0, {}
    for kind in ("i1", "i2", ">i4", "i8", "u2", "u4", "u8", ">u8"):
        array = (CHW[:, 0, 0] // 2).astype(kind)
        yield f"kind_{kind.replace('>', 'big_')}", array, LABELS, IMAGES, array, 0, {}
    large = numpy.array([[2**53 + 1], [2**63 + 2**40], [0], [1], [2**64 - 1]], numpy.uint64)
    yield "large_u8", large, LABELS, IMAGES, large, 0, {}
    yield "negative_i8", numpy.array([[-(2**62)], [-1], [0], [1], [2**62]]), LABELS, IMAGES, [
        [-(2.0**62)], [-1], [0], [1], [2.0**62]], 0, {}
    yield "times", TIMES, LABELS, "", normalised(TIMES), 1e-5, {}
    yield "times_i8", TIMES.astype("i8"), LABELS, "", normalised(numpy.floor(TIMES)), 1e-5, {}
    for name, options in (("chunked", {"chunks": (2, 3)}), ("gzip", {"compression": "gzip"}),
                          ("shuffled", {"compression": "gzip", "shuffle": True}), ("checked", {"fletcher32": True}),
                          ("resizable", {"maxshape": (None, 4)})):
        yield name, VECTORS, LABELS, IMAGES, VECTORS, 0, options
    for kind in ("u1", "i8", "f4", "f8", ">i2"):
        yield f"label_{kind.replace('>', 'big_')}", VECTORS, LABELS.astype(kind), IMAGES, VECTORS, 0, {}
    yield "label_in_a_column", VECTORS, LABELS[:, None], IMAGES, VECTORS, 0, {}
    yield "one_hot", VECTORS, ONE_HOT, IMAGES, VECTORS, 0, {}
    yield "one_hot_u1", VECTORS, ONE_HOT.astype("u1"), IMAGES, VECTORS, 0, {}
    yield "target", VECTORS, LABELS - 0.5, IMAGES, VECTORS, 0, {}


def hdf5_refused(h5py):
    """Yields name, data, label, keys, reason and options of create_dataset."""
    no_numbers = "holds no numbers"
    for text in ("nan", "inf"):
        array = VECTORS.copy()
        array[3, 1] = float(text)
        yield text, array, LABELS, "", f"sample 3 of 'data' has the value {text}", {}
    yield "too_large", VECTORS * 1e300, LABELS, "", "of 'data' has the value", {}
    labels = LABELS.astype("f4")
    labels[2] = numpy.nan
    yield "label_nan", VECTORS, labels, "", "sample 2: the label is nan, not a number", {}
    yield "scalar", numpy.float32(1), LABELS, "", "the data has 0 axes", {}
    yield "scalar_label", VECTORS, numpy.int64(1), "", "the labels have 0 axes", {}
    yield "five_axes", CHW[:, None], LABELS, "", "the data has 5 axes", {}
    yield "three_axes_label", VECTORS, ONE_HOT[:, None], "", "the labels have 3 axes", {}
    yield "no_samples", VECTORS[:0], LABELS[:0], "", "its data is empty", {}
    yield "no_values", VECTORS[:, :0], LABELS, "", "its data is empty", {}
    yield "nothing", h5py.Empty("f4"), LABELS, "", "the data has 0 axes", {}
    yield "fewer_labels", VECTORS, LABELS[:4], "", "5 samples and 4 labels", {}
    yield "truths", VECTORS > 0, LABELS, "", no_numbers, {}
    yield "label_truths", VECTORS, LABELS > 0, "", no_numbers, {}
    names = ["red", "green", "blue", "blue", "red"]
    yield "label_texts", VECTORS, numpy.array(names, dtype="S5"), "", no_numbers, {}
    yield "label_objects", VECTORS, numpy.array(names, dtype=object), "", no_numbers, {}
    yield "complex", VECTORS * 1j, LABELS, "", no_numbers, {}
    yield "compound", numpy.zeros(5, [("x", "f4"), ("y", "f4")]), LABELS, "", no_numbers, {}
    yield "lzf", numpy.zeros((5, 400)), LABELS, "", "data: it is compressed by filter 32000", {"compression": "lzf"}
    yield "name_unknown", VECTORS, LABELS, "data_set: images, ", "it has no data set 'images'; it has data, label", {}
    yield "whole_targets_as_classes", VECTORS, LABELS - 5, "task: classification, ", "classes are the whole numbers", {}


def write_hdf5(out):
    import h5py

    def write(name, data, label, keys, options, **how):
        with h5py.File(out.folder / name, "w", **how) as file:
            file.create_dataset("data", data=data, **options)
            file.create_dataset("label", data=label)
        return f"train: [FOLDER/{name}], {keys}task: auto" if "task" not in keys else f"train: [FOLDER/{name}], {keys}"

    for name, data, label, keys, samples, tolerance, options in hdf5_read():
        name += ".h5"
        keys = write(name, data, label, keys, options)
        out.read(name, keys, samples, label_lines(label), tolerance)
    for name, how in (("newest_format.h5", {"libver": "latest"}), ("user_block.h5", {"userblock_size": 512})):
        out.read(name, write(name, VECTORS, LABELS, IMAGES, {}, **how), VECTORS, label_lines(LABELS))
    for name, data, label, keys, reason, options in hdf5_refused(h5py):
        name += ".h5"
        out.refused(name, write(name, data, label, keys, options), reason)

    def link(name, make, keys="", reason=None):
        with h5py.File(out.folder / name, "w") as file:
            file["deep/er/x"] = VECTORS
            file["deep/y"] = LABELS
            make(file)
        keys = f"train: [FOLDER/{name}], {IMAGES}{keys}task: auto"
        if reason:
            out.refused(name, keys, reason)
        else:
            out.read(name, keys, VECTORS, label_lines(LABELS))

    def links(data, label):
        def make(file):
            file["data"] = data
            file["label"] = label
        return make

    def virtual(file):
        layout = h5py.VirtualLayout(VECTORS.shape, VECTORS.dtype)
        layout[:] = h5py.VirtualSource(str(out.folder / "vectors.h5"), "data", VECTORS.shape)
        file.create_virtual_dataset("data", layout)
        file["label"] = LABELS

    def external(file):
        file.create_dataset("data", VECTORS.shape, "f4", external=[(str(out.folder / "raw"), 0, 80)])
        file["label"] = LABELS

    soft, other = h5py.SoftLink, h5py.ExternalLink
    link("nested.h5", lambda file: None, "data_set: deep/er/x, label_set: /deep/y, ")
    link("soft_link.h5", links(soft("/deep/er/x"), soft("/deep/y")))
    link("dangling.h5", links(soft("/none"), LABELS), reason="data: component not found")
    link("external_link.h5", links(other("vectors.h5", "data"), LABELS), reason="data: it is a link into another file")
    link("virtual.h5", virtual, reason="data: it is a virtual data set")
    link("external_storage.h5", external, reason="data: its values lie in another file")
    link("group.h5", lambda file: None, "data_set: deep, label_set: deep/y, ", reason="deep: not a dataset")


# npy


def npy_read():
    """Yields name, array, labels, keys, samples as dtrain gives them, and tolerance."""
    yield "vectors", VECTORS, LABELS, IMAGES, VECTORS, 0
    yield "single_numbers", VECTORS[:, 0], LABELS, IMAGES, VECTORS[:, 0], 0
    yield "float64", VECTORS.astype("f8") * 1.1, LABELS, IMAGES, VECTORS.astype("f8") * 1.1, 0
    yield "chw", CHW, LABELS, IMAGES, CHW / 255, 1e-6
    yield "hwc", HWC, LABELS, IMAGES, CHW / 255, 1e-6
    yield "hwc_said", HWC[:, :3], LABELS, IMAGES + "layout: hwc, ", CHW[:, :, :3] / 255, 1e-6
    yield "grey", CHW[:, 0], LABELS, IMAGES, CHW[:, 0] / 255, 1e-6
    yield "bytes_as_vectors", CHW[:, 0, 0], LABELS, IMAGES, CHW[:, 0, 0], 0
    yield "every_other", VECTORS[:, ::2], LABELS, IMAGES, VECTORS[:, ::2], 0
    yield "times", TIMES, LABELS, "", normalised(TIMES), 1e-5
    for kind in ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"):
        yield f"label_{kind}", VECTORS, LABELS.astype(kind), IMAGES, VECTORS, 0
    yield "label_truths", VECTORS, LABELS > 0, IMAGES, VECTORS, 0
    yield "label_in_a_column", VECTORS, LABELS[:, None], IMAGES, VECTORS, 0
    yield "one_hot", VECTORS, ONE_HOT, IMAGES, VECTORS, 0
    yield "target", VECTORS, LABELS - 0.5, IMAGES, VECTORS, 0
    yield "whole_floats", VECTORS, LABELS.astype("f8"), IMAGES + "task: classification, ", VECTORS, 0


def npy_refused():
    with_nan = VECTORS.copy()
    with_nan[3, 1] = numpy.nan
    yield "nan", with_nan, LABELS, "", "value 1 of sample 3 is nan"
    yield "too_large", VECTORS * 1e300, LABELS, "", "not a finite float32"
    yield "label_nan", VECTORS, with_nan[:, 1], "", "sample 3 is nan"
    for kind in (">f4", ">f8", "f2", "longdouble", "c8", "m8[s]", "M8[s]"):
        yield f"kind_{kind.strip('>')[:2]}_{len(kind)}", VECTORS.astype("i8").astype(kind), LABELS, "", "of type '"
    yield "label_big", VECTORS, LABELS.astype(">i8"), "", "of type '>i8'"
    for kind in ("i1", "i8", "u8", "?"):
        yield f"whole_{kind.strip('?')}", VECTORS.astype(kind), LABELS, "", "uint8, float32 or float64"
    yield "fortran", numpy.asfortranarray(VECTORS), LABELS, "", "Fortran order"
    yield "objects", VECTORS.astype(object), LABELS, "", "Python objects"
    yield "texts", VECTORS.astype("U"), LABELS, "", "its values are texts"
    yield "label_texts", VECTORS, numpy.array(["a", "b", "c", "a", "b"]), "", "its values are texts"
    yield "label_bytes", VECTORS, numpy.array([b"a", b"b", b"c", b"a", b"b"]), "", "its values are texts"
    yield "compound", numpy.zeros(5, [("x", "f4"), ("y", "f4")]), LABELS, "", "its values are of type"
    yield "scalar", numpy.float32(1), LABELS, "", "samples are [N, D]"
    yield "five_axes", CHW[:, None], LABELS, "", "samples are [N, D]"
    yield "no_samples", VECTORS[:0], LABELS[:0], "", "samples are [N, D]"
    yield "fewer_labels", VECTORS, LABELS[:4], "", "for the 5 samples of"
    yield "one_hot_i8", VECTORS, ONE_HOT.astype("i8"), "", "numpy.argmax"
    yield "layout_unknown", HWC[:, :3], LABELS, "", "data.layout"
    yield "negative_label", VECTORS, LABELS - 1, "", "the label is -1"


def write_npy(out):
    def keys_of(name, keys):
        return f"train: FOLDER/{name}, train_labels: FOLDER/{name}.y.npy, {keys}".rstrip(", ")

    def write(name, data, label, keys, version=None):
        with open(out.folder / name, "wb") as file:
            numpy.lib.format.write_array(file, numpy.asanyarray(data), version)
        numpy.save(out.folder / f"{name}.y.npy", label)
        return keys_of(name, keys)

    for name, data, label, keys, samples, tolerance in npy_read():
        name += ".npy"
        out.read(name, write(name, data, label, keys), samples, label_lines(label), tolerance)
    for version in ((2, 0), (3, 0)):
        name = f"version_{version[0]}.npy"
        out.read(name, write(name, VECTORS, LABELS, IMAGES, version), VECTORS, label_lines(LABELS))
    for name, data, label, keys, reason in npy_refused():
        name += ".npy"
        out.refused(name, write(name, data, label, keys), reason)

    def change(name, reason, of):
        keys = write(name, VECTORS, LABELS, IMAGES)
        (out.folder / name).write_bytes(of((out.folder / name).read_bytes()))
        if reason:
            out.refused(name, keys, reason)
        else:
            out.read(name, keys, VECTORS, label_lines(LABELS))

    change("packed.npy.gz", None, gzip.compress)
    change("shorter.npy", "ends at byte", lambda file: file[:-1])
    change("longer.npy", "content follows", lambda file: file + b"\0")
    change("no_magic.npy", "does not begin as a .npy file", lambda file: b"\x92" + file[1:])
    keys = write("archive.npz", VECTORS, LABELS, "")
    numpy.savez(out.folder / "archive.npz", x=VECTORS)
    out.refused("archive.npz", keys, "an .npz is an archive")


def main():
    folder = Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    out = Writer(folder)
    {"csv": write_csv, "hdf5": write_hdf5, "npy": write_npy}[sys.argv[1]](out)
    out.finish()


if __name__ == "__main__":
    main()
